"""settle: what runs left that ended without their exit handler (terminated, or their Workflow deleted), of every model.

A run is alive as long as its Workflow is there and has not ended; its exit handler is a part of it. A living run is
never touched. Route and services are read first, the living runs afterwards: whoever left something was there before.

    1  a candidate whose run is not alive is taken out of the route, whatever else is going on
    2  where no run of the model is alive, its dead releases are settled as their exit handlers would have done it, and
       services that nobody needs are deleted
    3  the route's last change is recorded where the ledger lacks it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from seatrial import release, route
from seatrial.errors import Frozen, StepError, Unavailable
from seatrial.ledger import Book
from seatrial.ports import Clock, Manifest, Predictions, Services, Store
from seatrial.route import Router, RouteState
from steps import _runtime
from steps.settle_release import __main__ as one_release
from steps.settle_release import history
from steps.settle_release.cleaning import clean, holder, versions_of
from steps.settle_release.contract import Inputs as OneInputs
from steps.settle_release.logic import in_use, is_release
from steps.settle_release.sweep_contract import STEP, Inputs, Outputs

MODE = "settle"
"""The word after `python -m steps.settle_release` that means this."""
WHY = "its run ended without its exit handler"

Say = Callable[[str], None]


class Labelled(Protocol):
    """Objects of one namespace, each labelled with its model."""

    def models(self) -> list[str]:
        """The models that have one, sorted."""
        ...


class SweptServices(Services, Labelled, Protocol):
    """InferenceServices of one namespace, of all models."""


class Runs(Protocol):
    """Releases' Workflows."""

    def living(self) -> list[Manifest]:
        """Those that have not ended."""
        ...

    def ended(self) -> list[Manifest]:
        """Those that have ended and are kept still."""
        ...


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What sweeping needs from outside."""

    routes: Labelled
    services: SweptServices
    runs: Runs
    router: Router
    store: Store
    predictions: Predictions
    clock: Clock

    @property
    def book(self) -> Book:
        """The ledger."""
        return Book(self.store, self.clock)


@dataclass(frozen=True)
class Look:
    """What route and services of one model said, before the living runs were asked for."""

    state: RouteState
    services: Mapping[int, str]


def run(_inputs: Inputs, _scratch: Path, ports: Ports) -> Outputs:
    """Sweep over every model.

    Raises:
        Unavailable: The API does not answer, or something of a model could not be put right for now.
    """
    settled, left, away = 0, 0, None
    names = sorted({*ports.routes.models(), *ports.services.models()})
    looks = [_look(name, ports) for name in names]
    sweep = Sweep(ports, _tell)
    for look in looks:
        try:
            settled += sweep.settle(look)
        except StepError as error:
            _tell(f"{look.state.model_name} is left as it is: {error}")
            left, away = left + 1, away if isinstance(error, Frozen) else error
    if away is not None:
        raise Unavailable(f"{left} of {len(names)} models could not be settled, one because {away}") from away
    return Outputs(settled=settled, left=left)


def model(name: str, ports: Ports, say: Say) -> int:
    """Sweep over one model; how much was put right.

    Raises:
        Frozen: Somebody changed the route by hand.
        Unavailable: The API or the store does not answer.
    """
    look = _look(name, ports)
    return Sweep(ports, say).settle(look)


class Sweep:
    """One sweep: what was alive after everything had been looked at."""

    def __init__(self, ports: Ports, say: Say) -> None:
        self._ports = ports
        self._say = say
        living = ports.runs.living()
        self._alive = {history.uid(one) for one in living}
        self._busy = {history.parameter(one, "MODEL_NAME") for one in living}

    @cached_property
    def _ended(self) -> Mapping[str, Manifest]:
        """Asked for only where something was left."""
        return {history.uid(one): one for one in self._ports.runs.ended()}

    def settle(self, look: Look) -> int:
        """Put one model right; how many releases and services it took.

        Raises:
            Frozen: Somebody changed the route by hand.
            Unavailable: The API or the store does not answer.
        """
        state, ports = look.state, self._ports
        route.ours(state)
        name, done = state.model_name, 0
        if state.candidate is not None and state.owner not in self._alive:
            done += self._taken_out(state)
        if name not in self._busy:
            for release_id in self._dead(look):
                self._as_its_exit_handler(name, release_id)
                done += 1
            deleted = clean(
                ports.router.read(name), own=None, services=ports.services, store=ports.store, book=ports.book
            )
            for service in deleted:
                self._say(f"deleted {service}: nobody needs it")
            done += len(deleted)
        self._record(name)
        return done

    def _taken_out(self, before: RouteState) -> int:
        """Traffic first: it needs the route and nothing else."""
        owner = before.owner if is_release(before.owner) else None
        after = self._ports.router.change(
            before.model_name,
            lambda state: (
                route.settle(state, now=self._ports.clock.now(), owner=owner) if state.owner == before.owner else None
            ),
            action="settle",
            reason=WHY,
        )
        if after.candidate is not None:
            return 0
        self._say(f"v{before.candidate} of {before.model_name} was on trial and nobody watches it: taken out")
        return 1

    def _dead(self, look: Look) -> Iterator[str]:
        """The releases that left something, are not alive and have no outcome: who wrote the route last is one."""
        state, store, last = look.state, self._ports.store, self._ports.book.last(look.state.model_name)
        if not state.exists and last is not None and last.champion is not None:
            return  # the route was lost: what is there may be made to serve again
        writer = state.owner if state.exists else last.by if last is not None else ""
        holders = [holder(store, state.model_name, version) for version in set(look.services) - in_use(state)]
        for release_id in dict.fromkeys(one for one in (writer, *holders) if one is not None and is_release(one)):
            if release_id in self._alive:
                continue
            if store.read(release.outcome_key(state.model_name, release_id)) is None:
                yield release_id

    def _as_its_exit_handler(self, name: str, release_id: str) -> None:
        """Settle one release by its Workflow, if that is kept still."""
        found, ports = self._ended.get(release_id), self._ports
        inputs = OneInputs(
            model_name=name,
            release_id=release_id,
            workflow_name=found["metadata"]["name"] if found else "",
            workflow_status=(found.get("status") or {}).get("phase") or "Failed" if found else "Failed",
            reason=history.parameter(found, "REASON") if found else "",
        )
        one = one_release.Ports(
            workflows=_One(found),
            router=ports.router,
            services=ports.services,
            store=ports.store,
            predictions=ports.predictions,
            clock=ports.clock,
            say=lambda _, **facts: self._say(str(facts.get("text", ""))),
        )
        with TemporaryDirectory() as scratch:
            outputs = one_release.run(inputs, Path(scratch), one)
        self._say(f"the release {inputs.workflow_name or release_id} of {name} is settled: {outputs.outcome}")

    def _record(self, name: str) -> None:
        """The entry of the route's last change, if it is missing."""
        state = self._ports.router.read(name)
        last = self._ports.book.last(name)
        if state.exists and not state.foreign and (last is None or last.sequence < state.sequence):
            self._ports.router.change(name, lambda _: None, action="settle", reason="")


@dataclass(frozen=True)
class _One:
    """The port `Workflows` over one run, or none."""

    run: Manifest | None

    def get(self, _name: str) -> Manifest | None:
        """It."""
        return self.run


def _look(name: str, ports: Ports) -> Look:
    return Look(ports.router.read(name), versions_of(ports.services, name))


def _tell(text: str) -> None:
    _runtime.event("note", text=text)


def main(arguments: list[str]) -> None:
    """The step's entry point."""
    from seatrial.adapters import clock, gateway, kubernetes, s3  # noqa: PLC0415 - as in every step, only when it runs

    def ports() -> Ports:
        cluster, time, store = kubernetes.from_environment(), clock.from_environment(), s3.from_environment()
        book = Book(store, time)
        return Ports(
            routes=cluster.routes,
            services=cluster.services,
            runs=cluster.workflows,
            router=Router(cluster.routes, time, namespace=cluster.namespace, book=book, say=_runtime.event),
            store=store,
            predictions=gateway.from_environment().predictions,
            clock=time,
        )

    _runtime.main(MODE, STEP, Inputs, lambda i, s: run(i, s, ports()), arguments)
