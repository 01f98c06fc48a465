"""Whether a failed attempt gets another. Source: processNodeRetries of Argo Workflows 4.0.5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seatrial.app.runner import expression
from seatrial.app.runner.manifest import Backoff, RetryStrategy
from seatrial.app.runner.nodes import Node, Phase, moment

NAMES: Final = frozenset({"lastRetry.status", "lastRetry.message", "lastRetry.exitCode"})
"""What an expression may ask for."""


@dataclass(frozen=True)
class Over:
    """No more attempts: the phase is the last one's."""

    phase: Phase
    message: str = ""


@dataclass(frozen=True)
class Again:
    """Another attempt, at this moment in seconds since 1970."""

    at: float
    message: str


def judge(strategy: RetryStrategy, attempts: Sequence[Node], *, stopped: str = "") -> Over | Again:
    """What follows the last of `attempts`, which has ended.

    Args:
        strategy: When to try again.
        attempts: All of them, at least one.
        stopped: Why nothing may start any more; empty: it may.
    """
    last = attempts[-1]
    if last.phase == "Succeeded":
        return Over("Succeeded")
    if stopped:
        return Over(last.phase, stopped)
    if len(attempts) > strategy.limit:
        return Over(last.phase, "No more retries left")
    if not expression.is_true(strategy.expression, lambda name: _fact(last, name)):
        return Over(last.phase, "retryStrategy.expression evaluated to false")
    wait_s = backoff_s(strategy.backoff, len(attempts))
    return Again(moment(last.finished_at or "") + wait_s, f"Backoff for {wait_s:g} seconds")


def backoff_s(backoff: Backoff | None, failed: int) -> float:
    """Seconds between the attempt number `failed` (from 1) and the next."""
    if backoff is None:
        return 0.0
    wait_s = backoff.duration * float(backoff.factor) ** (failed - 1)
    return min(wait_s, backoff.cap if backoff.cap is not None else wait_s)


def _fact(last: Node, name: str) -> str:
    """`lastRetry.*`; the exit code is a text, and -1 when there is none."""
    code = last.outputs.exit_code if last.outputs is not None else None
    facts = {
        "lastRetry.status": last.phase,
        "lastRetry.message": last.message,
        "lastRetry.exitCode": "-1" if code is None else code,
    }
    return facts[name]
