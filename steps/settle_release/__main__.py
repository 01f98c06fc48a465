"""settle_release: however it ended, put right what is left and say what happened.

    1  the route: a candidate of this release that was not promoted is taken out; nothing else is needed for that
    2  who answers is read back
    3  services that nobody needs are deleted, the ledger gets what is missing, the outcome is written down

Everything after 1 may fail without undoing it: what could not be done is said in the summary. With the word `settle`
before its arguments it is the sweep over all models instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from seatrial import digests, papers, release, route
from seatrial.errors import Frozen, InvalidInput, StepError
from seatrial.ledger import Book, Fact
from seatrial.names import model_name
from seatrial.ports import Clock, Predictions, Services, Store, Workflows
from seatrial.release import EXIT_CODES, Outcome, Release
from seatrial.route import Router, RouteState
from steps import _runtime
from steps.settle_release import history, logic, reasons
from steps.settle_release.cleaning import clean
from steps.settle_release.contract import STEP, Inputs, Outputs
from steps.settle_release.history import Node
from steps.settle_release.logic import Trial

READ_BACK_S: Final = 20.0
LEDGER_LATEST: Final = 50
"""Ledger entries among which those of this release are looked for."""
ANY_REQUEST: Final = b"{}"
"""Enough to be answered 404 where there is no route."""

Say = Callable[..., None]
"""Takes an event and its facts."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What settling needs from outside."""

    workflows: Workflows
    router: Router
    services: Services
    store: Store
    predictions: Predictions
    clock: Clock
    say: Say = _runtime.event


@dataclass
class Summary:
    """What happened, as far as it is known; notes say what could not be found out or done."""

    say: Say
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say it here and in the log."""
        self.notes.append(text)
        self.say("note", text=text)


def run(inputs: Inputs, scratch: Path, ports: Ports) -> Outputs:
    """Put right what the release left, and say how it ended.

    Raises:
        Unavailable: The API that keeps the route does not answer.
    """
    summary = Summary(ports.say)
    named = _is_model_name(inputs.model_name)  # else no route, no service and no key can have this name
    state, trial = _put_right(inputs, ports, summary) if named else (None, Trial())
    steps = _steps(inputs, ports, summary)
    version = logic.version_of(steps)
    if state is not None:
        trial = _remembered(trial, inputs, state, ports, summary)
        version = version or _version(inputs, steps, ports.store, summary)
        _tidy(state, trial, version, ports, summary)
    outcome = logic.outcome_of(steps, trial)
    summary.facts |= {
        "outcome": outcome,
        "release_id": inputs.release_id,
        "model_name": inputs.model_name,
        "version": version,
        "at": ports.clock.now().isoformat(timespec="seconds"),
        "reason": inputs.reason,
        "reasons": _reasons(inputs, outcome, steps, ports.store),
        "exit_codes": logic.exit_codes(steps),
        **(_who(state, outcome, version, ports.store, summary) if state is not None else {}),
        "notes": summary.notes,
    }
    if named and version is not None:
        _keep(inputs, ports.store, summary)
    (scratch / "summary.json").write_text(json.dumps(summary.facts, indent=2, ensure_ascii=False), encoding="utf-8")
    return Outputs(outcome=outcome, summary=scratch / "summary.json")


def _put_right(inputs: Inputs, ports: Ports, summary: Summary) -> tuple[RouteState, Trial]:
    """The route without this release's unpromoted candidate. It asks nobody but the route."""
    before = ports.router.read(inputs.model_name)
    try:
        state = ports.router.change(
            inputs.model_name,
            lambda s: route.settle(s, now=ports.clock.now(), owner=inputs.release_id),
            action="settle",
            reason=f"the release ended {inputs.workflow_status} and its version was not promoted",
        )
    except Frozen as error:
        summary.note(str(error))
        return before, Trial(began=True, frozen=True)
    mine = state.owner == inputs.release_id
    began = before.candidate is not None and before.owner == inputs.release_id
    return state, Trial(promoted=mine and state.action == "promote", began=began)


def _steps(inputs: Inputs, ports: Ports, summary: Summary) -> dict[str, Node]:
    """What the Workflow says; nothing when it cannot be read, and then nothing counts as passed."""
    try:
        workflow = ports.workflows.get(inputs.workflow_name)
        if workflow is not None:
            return history.steps(workflow)
        summary.note(f"there is no workflow {inputs.workflow_name}: what its steps said is not known")
    except StepError as error:
        summary.note(f"the workflow {inputs.workflow_name} could not be read: {error}")
    return {}


def _remembered(trial: Trial, inputs: Inputs, state: RouteState, ports: Ports, summary: Summary) -> Trial:
    """The trial with what the ledger remembers: the route forgets when another release begins, or when it goes."""
    book = Book(ports.store, ports.clock)
    try:
        entries = book.entries(inputs.model_name, latest=LEDGER_LATEST)
        last = entries[-1] if entries else None
        if last is not None and not state.exists and (last.by, last.action) == (inputs.release_id, "begin"):
            why = "found without a route; who removed it did not come to record it"
            book.append(inputs.model_name, [_removed(last.sequence + 1, inputs.release_id, why)])
    except StepError as error:
        summary.note(f"the ledger could not be read or completed: {error}")
        return trial
    done = {entry.action for entry in entries if entry.by == inputs.release_id}
    began = trial.began or not done.isdisjoint({"begin", "shift", "settle"})
    return replace(trial, promoted=trial.promoted or "promote" in done, began=began)


def _removed(sequence: int, by: str, why: str) -> Fact:
    return Fact(sequence=sequence, action="go_back", weights={}, champion=None, by=by, reason=why)


def _version(inputs: Inputs, steps: Mapping[str, Node], store: Store, summary: Summary) -> int | None:
    """The release's version as resolve_release kept it; for when the Workflow does not tell."""
    if logic.unchanged(steps):
        return None
    try:
        raw = store.read(release.key(inputs.model_name, inputs.release_id))
        return None if raw is None else Release.model_validate_json(raw).version
    except (StepError, ValidationError) as error:
        summary.note(f"the release's own record could not be read: {error}")
        return None


def _tidy(state: RouteState, trial: Trial, version: int | None, ports: Ports, summary: Summary) -> None:
    """Read back who answers, then delete what nobody needs: never a service that may still get traffic."""
    if trial.frozen or state.foreign:
        return
    try:
        if trial.began and not trial.promoted:
            summary.facts["read_back"] = _read_back(state, ports)
        book = Book(ports.store, ports.clock)
        deleted = clean(state, own=version, services=ports.services, store=ports.store, book=book)
        summary.facts["deleted_services"] = deleted
    except StepError as error:
        summary.note(f"services of {state.model_name} were left for the next settle: {error}")


def _read_back(state: RouteState, ports: Ports) -> dict[str, int]:
    """Who answers without the header: 404 where nobody serves."""
    expected = [version for version, percent in state.weights.items() if percent > 0]
    request = ANY_REQUEST
    if state.champion is not None:
        serving = release.serving(ports.store, state.model_name, state.champion)
        request = papers.golden_request(ports.store, serving.bundle)
    return route.read_back(
        ports.predictions, ports.clock, state.model_name, request, expected=expected, within_s=READ_BACK_S
    )


def _reasons(inputs: Inputs, outcome: Outcome, steps: Mapping[str, Node], store: Store) -> list[str]:
    """Why it was not promoted; the first names the step and, where there is one, the check."""
    if outcome in {"promoted", "unchanged"}:
        return []
    node = logic.deciding(steps)
    if node is None:
        return [f"the workflow ended {inputs.workflow_status}"]
    return logic.why(node, reasons.of_verdict(node, store, inputs.release_id))


def _who(state: RouteState, outcome: Outcome, version: int | None, store: Store, summary: Summary) -> dict[str, Any]:
    """Who serves, and what the release's version is made of; the champion when nothing changed."""
    shown = state.champion if outcome == "unchanged" else version
    served = None
    try:
        served = release.served(store, state.model_name, shown) if shown is not None else None
    except StepError as error:
        summary.note(f"what v{shown} is made of could not be read: {error}")
    return {
        "champion": state.champion,
        "previous": state.previous,
        "weights": {str(v): percent for v, percent in state.weights.items()},
        "bundle": served.bundle if served else None,
        "image": served.image if served else None,
    }


def _keep(inputs: Inputs, store: Store, summary: Summary) -> None:
    """The outcome, where `status` and the next settle look for it."""
    try:
        store.write(release.outcome_key(inputs.model_name, inputs.release_id), digests.canonical(summary.facts))
    except StepError as error:
        summary.note(f"the outcome could not be kept in the store: {error}")


def _is_model_name(text: str) -> bool:
    try:
        model_name(text)
    except InvalidInput:
        return False
    return True


def _exit_code(outputs: Outputs) -> int:
    return 1 if outputs.outcome == "none" else EXIT_CODES[outputs.outcome]


if __name__ == "__main__":
    if sys.argv[1:2] == ["settle"]:
        from steps.settle_release import sweep

        sweep.main(sys.argv[2:])

    from seatrial.adapters import clock, gateway, kubernetes, s3

    def _ports() -> Ports:
        cluster, time, store = kubernetes.from_environment(), clock.from_environment(), s3.from_environment()
        return Ports(
            workflows=cluster.workflows,
            router=Router(
                cluster.routes, time, namespace=cluster.namespace, book=Book(store, time), say=_runtime.event
            ),
            services=cluster.services,
            store=store,
            predictions=gateway.from_environment().predictions,
            clock=time,
        )

    _runtime.main("settle_release", STEP, Inputs, lambda i, s: run(i, s, _ports()), exit_code=_exit_code)
