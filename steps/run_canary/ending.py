"""How a canary ends: promoted, taken back, or superseded; read back by counted answers, signed, shown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from seatrial import digests, report, verdict
from seatrial.canary import curves
from seatrial.canary.record import Look
from seatrial.canary.required import required
from seatrial.errors import StepError
from seatrial.route import go_back, promote, read_back
from seatrial.triton import requests
from seatrial.verdict import Check
from steps import _runtime
from steps.run_canary import papers
from steps.run_canary.attempt import Attempt
from steps.run_canary.contract import Inputs, Outputs
from steps.run_canary.ports import Ports

Outcome = Literal["promoted", "rolled_back", "superseded"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What was found out before anything was decided for good."""

    champion: int | None
    checks: tuple[Check, ...]
    looks: Sequence[Look]
    record: bytes


def promoted(attempt: Attempt) -> Check:
    """Make the candidate champion, once; the check `read_back`."""
    inputs = attempt.inputs
    reason = f"v{inputs.version} passed its canary" + (f": {inputs.reason}" if inputs.reason else "")
    attempt.ports.router.change(
        inputs.model_name,
        lambda state: promote(state, version=inputs.version, owner=inputs.release_id),
        action="promote",
        reason=reason,
    )
    return answering(attempt, expected={inputs.version})


def take_back(inputs: Inputs, ports: Ports, reason: str) -> int | None:
    """Give all traffic to the champion, or take the route of a first release away; who serves then.

    It needs the route and nothing else.
    """
    state = ports.router.change(
        inputs.model_name,
        lambda state: go_back(state, owner=inputs.release_id, version=inputs.version),
        action="go_back",
        reason=f"v{inputs.version}: {reason}",
    )
    return state.champion


def answering(attempt: Attempt, *, expected: Collection[int]) -> Check:
    """The check `read_back`: answers in a row from whom they should come.

    Raises:
        Unavailable: They do not.
    """
    ports = attempt.ports
    body = requests.body(attempt.papers.golden[0])
    seen = read_back(ports.predictions, ports.clock, attempt.inputs.model_name, body, expected=expected)
    who = " and ".join(f"v{version}" for version in sorted(expected)) or "nobody"
    _runtime.event("read_back", serves=who, answers=seen)
    return Check(name="read_back", decision="pass", reason=f"{who} answers", evidence=dict(seen))


def written(attempt: Attempt, trial: Trial, *, outcome: Outcome) -> Outputs:
    """Verdict, record and report; the verdict is kept with the papers too.

    Raises:
        Unavailable: The store is away, and the candidate was promoted: without its verdict that is not the end.
    """
    concluded = verdict.conclude(
        "run_canary",
        attempt.papers.release,
        attempt.papers.spec,
        required=required(champion=trial.champion is not None),
        checks=trial.checks,
        judged={"bundle": attempt.inputs.bundle_digest, "record": digests.of_bytes(trial.record)},
    )
    envelope = verdict.sign(concluded, attempt.ports.signing_key)
    keep(attempt, papers.VERDICT, envelope, must=outcome == "promoted")
    outputs = Outputs(
        decision=concluded.decision,
        reason=concluded.reason,
        outcome=outcome,
        verdict=attempt.scratch / "verdict.dsse.json",
        record=attempt.scratch / "kept-record.jsonl",
        report=attempt.scratch / "report.html",
    )
    outputs.verdict.write_bytes(envelope)
    outputs.record.write_bytes(trial.record)
    page = report.page(concluded, sections=_sections(attempt, trial))
    outputs.report.write_text(page, encoding="utf-8")
    _runtime.event("judged", decision=concluded.decision, outcome=outcome, reasons=concluded.reasons)
    return outputs


def keep(attempt: Attempt, name: str, data: bytes, *, must: bool) -> None:
    """Keep a paper; going back does not wait for the store."""
    try:
        papers.keep(attempt.inputs, attempt.ports, name, data)
    except StepError as error:
        if must:
            raise
        _runtime.event("not_kept", name=name, error=str(error))


def _sections(attempt: Attempt, trial: Trial) -> list[tuple[str, str]]:
    alpha = attempt.papers.spec.canary.alpha
    return [
        ("Traffic", curves.weights(trial.looks)),
        ("Evidence", curves.evidence(trial.looks, alpha)),
    ]
