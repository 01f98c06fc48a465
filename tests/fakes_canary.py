"""A gateway that counts as its route says, on a clock that only sleeping moves: a whole ramp runs in milliseconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import fakes_release as made
import numpy as np
from fakes_serving import NAMESPACE, START, Deadly, FakeClock, MemoryRoutes, MemoryStore, RoutedPredictions

from seatrial import bundle, digests, release, verdict
from seatrial.canary.answers import Tally
from seatrial.errors import Unavailable
from seatrial.ledger import Book
from seatrial.names import kebab, version_of
from seatrial.ports import Answer, ArmCounts, Scrape
from seatrial.release import Served
from seatrial.route import Router, RouteState, begin, promote, rollback
from seatrial.spec import Canary, CanaryStep
from seatrial.triton import requests
from seatrial.triton.requests import Example
from seatrial.verdict import Verdict
from steps import _required
from steps.package_model import papers as package_papers
from steps.run_canary.__main__ import run
from steps.run_canary.contract import Inputs, Outputs
from steps.run_canary.ports import Ports

MODEL = "tea_orders"
RELEASE = "uid-2"
PLAN = Canary(
    steps=(CanaryStep(weight=10, min_s=5, max_s=60), CanaryStep(weight=50, min_s=5, max_s=60)),
    watch_s=5,
    interval_s=1.0,
    replay_per_s=200,
)


class ScriptedClock(FakeClock):
    """Does what a test wants done so many seconds after the start, while somebody sleeps over that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.script: list[tuple[float, Callable[[], None]]] = []

    @property
    def seconds(self) -> float:
        return (self.moment - START).total_seconds()

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        due = [entry for entry in self.script if entry[0] <= self.seconds]
        self.script = [entry for entry in self.script if entry not in due]
        for _, action in due:
            action()


class FakeReplay:
    """`Replay`: the tally grows with the clock; the gateway below counts what goes by weight."""

    def __init__(self, clock: ScriptedClock, errors: Mapping[int, float]) -> None:
        self._clock = clock
        self._errors = errors
        self.per_s = 0.0
        self.arm: str | None = None
        self.running = False
        self.version = 0
        self.suspects: tuple[str, ...] = ()
        self._since = 0.0

    def start(
        self, model_name: str, examples: Sequence[Example], *, version: int, per_s: float, arm: str | None
    ) -> None:
        assert not self.running
        self.per_s, self.arm, self.version, self.running, self._since = per_s, arm, version, True, self._clock.seconds

    def so_far(self) -> Tally:
        sent = int(self.per_s * (self._clock.seconds - self._since)) if self.running else 0
        failed = round(sent * self._errors.get(self.version, 0.0)) if self.arm else 0
        return Tally(answered={self.version: sent - failed}, failed=failed, right=sent - failed, suspects=self.suspects)

    def stop(self) -> Tally:
        tally = self.so_far()
        self.running = False
        return tally


class FakeTraffic:
    """`TrafficCounts`: clients and replay, shared as the route says, failing as often as `errors` says."""

    def __init__(self, routes: MemoryRoutes, clock: ScriptedClock, replay: FakeReplay) -> None:
        self._routes, self._clock, self._replay = routes, clock, replay
        self.clients_per_s = 0.0
        self.errors: dict[int, float] = {}
        self.away = False
        self.share: float | None = None
        """What the canary really gets; None: as the route says."""
        self._counts: dict[int, list[int]] = {}
        self._before = clock.seconds
        self._carried: dict[int, float] = {}
        self._chance = np.random.default_rng(3)

    def reset(self) -> None:
        """The gateway is started anew."""
        self._move()
        self._counts = {}

    def scrape(self, model_name: str) -> Scrape:
        self._move()
        if self.away:
            raise Unavailable("the gateway does not tell")
        versions = {v: ArmCounts(requests=r, errors=e) for v, (r, e) in self._counts.items()}
        return Scrape(at=self._clock.now(), versions=versions)

    def _move(self) -> None:
        seconds, self._before = self._clock.seconds - self._before, self._clock.seconds
        by_weight = self._replay.per_s if self._replay.running and self._replay.arm is None else 0.0
        for version, share in self._shares().items():
            due = (self.clients_per_s + by_weight) * seconds * share + self._carried.get(version, 0.0)
            self._carried[version] = due - int(due)
            counts = self._counts.setdefault(version, [0, 0])
            counts[0] += int(due)
            counts[1] += int(self._chance.binomial(int(due), self.errors.get(version, 0.0)))

    def _shares(self) -> dict[int, float]:
        route = self._routes.get(kebab(MODEL))
        rules = [] if route is None else route["spec"]["rules"]
        weighted = [rule for rule in rules if not any(match.get("headers") for match in rule["matches"])]
        if not weighted:
            return {}
        shares = {version_of(b["name"]): b["weight"] / 100 for b in weighted[0]["backendRefs"]}
        if self.share is not None and 0 < shares.get(2, 0) < 1:
            shares = {2: self.share, 1: 1 - self.share}
        return shares


class World:
    """A candidate v2 on trial against v1, or v2 as a first release, with everything that run_canary needs."""

    def __init__(self, root: Path, *, champion: bool = True, plan: Canary = PLAN, survive: int | None = None) -> None:
        self.root = root
        case = made.case(root / "case", champion=made.Champion(made.onnx_model()) if champion else None)
        spec = case.spec.model_copy(update={"canary": plan})
        self.case = dataclasses.replace(case, spec=spec, release=case.release.model_copy(update={"version": 2}))
        self.deadly = Deadly()
        self.clock, self.store, self.routes = ScriptedClock(), MemoryStore(self.deadly), MemoryRoutes(self.deadly)
        self.book = Book(self.store, self.clock)
        self.router = Router(self.routes, self.clock, namespace=NAMESPACE, book=self.book)
        self.errors: dict[int, float] = {1: 0.0, 2: 0.0}
        self.replay = FakeReplay(self.clock, self.errors)
        self.traffic = FakeTraffic(self.routes, self.clock, self.replay)
        self.traffic.errors = self.errors
        self.examples = [
            Example(id=f"r{i}", request={"id": f"r{i}"}, answer={"probability": [i / 40]}) for i in range(40)
        ]
        self.predictions = RoutedPredictions(self.routes, {e.id: e.answer for e in self.examples})
        self.promote_on_replay = True
        self.bundle = digests.of_bytes(b"the bundle")
        self._papers()
        if champion:
            self._change(lambda s: self._begin(s, 1, None))
            self._change(lambda s: promote(s, version=1, owner=RELEASE))
        self._change(lambda s: self._begin(s, 2, 1 if champion else None))
        self.deadly.survive = survive

    def run(self, name: str = "scratch") -> Outputs:
        scratch = self.root / name
        scratch.mkdir()
        return run(self.inputs(), scratch, self.ports())

    def inputs(self) -> Inputs:
        return Inputs(
            model_name=MODEL, version=2, release_id=RELEASE, bundle_digest=self.bundle, reason="because of the test"
        )

    def ports(self) -> Ports:
        return Ports(
            store=self.store,
            router=self.router,
            predictions=self.predictions,
            traffic=self.traffic,
            replay=self.replay,
            clock=self.clock,
            signing_key=made.KEY,
            trusted_keys=(made.KEY.public_key(),),
            promote_on_replay=self.promote_on_replay,
        )

    def state(self) -> RouteState:
        return self.router.read(MODEL)

    def actions(self) -> list[str]:
        return [entry.action for entry in self.book.entries(MODEL)]

    def verdict(self, outputs: Outputs) -> Verdict:
        return verdict.verify(outputs.verdict.read_bytes(), [made.KEY.public_key()])

    def paper(self, name: str) -> str:
        return f"{bundle.papers_prefix(self.bundle)}/{name}"

    def somebody_rolls_back(self) -> None:
        self._change(lambda state: rollback(state, owner="ann"))

    def answers_wrong(self, version: int = 2) -> None:
        self.predictions.wrong[version] = Answer(status=200, version=version, outputs={"probability": [9.0]})

    def _begin(self, state: RouteState, version: int, against: int | None) -> RouteState | None:
        until = self.clock.now() + timedelta(seconds=60)
        now = self.clock.now()
        return begin(state, version=version, owner=RELEASE, now=now, watched_until=until, against=against)

    def _change(self, decide: Callable[[RouteState], RouteState | None]) -> None:
        self.router.change(MODEL, decide, action="begin", reason="the test begins")

    def _papers(self) -> None:
        model, rows = digests.of_bytes(b"model"), digests.of_bytes(b"rows")
        champion = self.case.release.champion
        rival = {} if champion is None else {"champion": champion.bundle}
        known = {
            "spec.json": digests.canonical(self.case.spec.model_dump(mode="json")),
            "release.json": digests.canonical(self.case.release.model_dump(mode="json")),
            "golden.jsonl": requests.lines(self.examples[:8]),
            "replay.jsonl": requests.lines(self.examples),
        }
        judged: dict[verdict.Gate, dict[str, str]] = {
            "validate_data": {"holdout_rows": rows},
            "evaluate_model": {"model": model, "holdout_rows": rows, **rival},
            "package_model": {"bundle": self.bundle, "model": model, **package_papers.judged(known)},
        }
        asked = _required.of(self.case.spec, champion=champion is not None)
        for gate, what in judged.items():
            known[f"{gate}.dsse.json"] = made.signed(self.case, gate, what, required=asked[gate])
        self.store.objects.update({self.paper(name): data for name, data in known.items()})
        served = Served(version=2, bundle=self.bundle, image=f"localhost/tea@{made.ZERO}", release_digest=made.ZERO)
        self.store.objects[release.served_key(MODEL, 2)] = served.model_dump_json().encode()
