"""How a finished run ended, wherever it ran: outcome, version, reasons, exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from seatrial import release
from seatrial.app.views.outcome import Ended
from seatrial.app.views.steps import Line, lines
from seatrial.errors import IntegrityError, InvalidInput, Unavailable

SETTLE: Final = "settle-release"
INTERRUPTED: Final = 130
"""As shells say it of what Ctrl-C ended."""
_PASSED_ON: Final = {InvalidInput.exit_code, Unavailable.exit_code, IntegrityError.exit_code}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a finished run beside the run itself."""

    summary: Mapping[str, Any]
    """What settle_release said; empty: nothing."""
    seconds: float
    """It took so long."""
    reports: tuple[Path, ...] = field(default=())
    """Of its gates."""
    word: str = ""
    """Why it was stopped, where that was not a person's Ctrl-C."""


def ended(
    model: str,
    template: Mapping[str, Any],
    workflow: Mapping[str, Any],
    facts: Facts,
    why: Callable[[Line], str],
) -> Ended:
    """How a finished run ended: as settle_release says; without its word it failed.

    Args:
        model: What was released.
        template: The release.
        workflow: The run.
        facts: What else is known.
        why: Why a step failed, in words.
    """
    steps = [line for line in lines(template, workflow) if not line.group]
    summary = facts.summary
    outcome = summary.get("outcome", "failed")
    outcome = outcome if outcome in release.EXIT_CODES else "failed"
    broken = [step for step in steps if step.phase in {"Failed", "Error"}]
    # settle_release is red by its word unless promoted or unchanged: without its word, it is what failed.
    failed = next((step for step in broken if step.name != SETTLE or not summary), None)
    reasons = tuple(_plain(str(reason), steps) for reason in summary.get("reasons", ()))
    if failed is not None and outcome not in {"promoted", "refused"}:
        reasons = (f"{failed.name}: {why(failed)}", *reasons[1:])
    stopped = bool(workflow.get("spec", {}).get("shutdown"))
    if stopped and outcome not in {"promoted", "refused"}:
        where = f" while {failed.name} ran" if failed is not None else ""
        reasons = (f"{facts.word or 'it was stopped'}{where}", *reasons[1:])
    code = _stopped_code(facts.word) if stopped and outcome == "failed" else _exit_code(outcome, workflow, failed)
    return Ended(
        outcome=outcome,
        model=model,
        version=summary.get("version") or (_version(steps) if outcome != "failed" else None),
        exit_code=code,
        seconds=facts.seconds,
        reasons=reasons,
        bundle=summary.get("bundle"),
        image=summary.get("image"),
        run=str(workflow["metadata"]["name"]),
        reports=facts.reports,
        notes=tuple(map(str, summary.get("notes", ()))),
    )


def _stopped_code(word: str) -> int:
    """Of a release that was stopped: its sandbox is away, or a person said Ctrl-C."""
    return Unavailable.exit_code if word else INTERRUPTED


def _exit_code(outcome: str, workflow: Mapping[str, Any], failed: Line | None) -> int:
    """Of the outcome; a release that failed has the code of the step that did."""
    if outcome != "failed" or failed is None:
        return next(code for known, code in release.EXIT_CODES.items() if known == outcome)
    node = workflow["status"]["nodes"].get(failed.node_id, {})
    code = str((node.get("outputs") or {}).get("exitCode", ""))
    return int(code) if code.isdigit() and int(code) in _PASSED_ON else 1


def _version(steps: list[Line]) -> int | None:
    told = next((step.outputs.get("version", "") for step in steps if step.name == "resolve-release"), "")
    return int(told) if told.isdigit() and int(told) > 0 else None


def _plain(reason: str, steps: list[Line]) -> str:
    """A reason without the step that gave it: the check says more."""
    step, _, rest = reason.partition(": ")
    return rest if rest and step in {line.name for line in steps} else reason
