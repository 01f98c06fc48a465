"""The read-back: who answers is seen in answers, not in a status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from seatrial.errors import Unavailable
from seatrial.ports import Answer, Clock, Predictions

CONSECUTIVE: Final = 20
"""Answers in a row that must come from the expected versions."""
WITHIN_S: Final = 20.0
"""Gateways follow a change within 2 s at their slowest. Source: Traefik, providersThrottleDuration."""
PAUSE_S: Final = 0.02


def read_back(
    predictions: Predictions,
    clock: Clock,
    model_name: str,
    request: bytes,
    *,
    expected: Collection[int],
    arm: str | None = None,
    consecutive: int = CONSECUTIVE,
    within_s: float = WITHIN_S,
) -> dict[str, int]:
    """Ask through the gateway until `consecutive` answers in a row come from the expected versions.

    Args:
        predictions: The gateway.
        clock: For the deadline and the pauses.
        model_name: The model.
        request: An Open Inference Protocol body that the versions answer; of a removed route any will do.
        expected: Versions that may answer; empty: the route is removed, and 404 is expected.
        arm: `canary` asks by header.
        consecutive: How many in a row.
        within_s: Seconds after which it is given up.

    Returns:
        Who answered how often, all in all: `v1`, `v2`, or the status of an answer without a version, like `404`.

    Raises:
        Unavailable: The deadline passed; the message counts who answered instead.
    """
    deadline = clock.now() + timedelta(seconds=within_s)
    seen: Counter[str] = Counter()
    row = 0
    while row < consecutive:
        answer = predictions.ask(model_name, request, arm=arm)
        seen[_who(answer)] += 1
        row = row + 1 if _right(answer, expected) else 0
        if row < consecutive and clock.now() >= deadline:
            wanted = f"{_named(expected)} was to answer {consecutive} times in a row within {within_s:g} s"
            raise Unavailable(f"{model_name}: {wanted}; answers came from {dict(seen)}: look at the gateway")
        clock.sleep(PAUSE_S if row else 5 * PAUSE_S)
    return dict(seen)


def _named(expected: Collection[int]) -> str:
    return " or ".join(f"v{version}" for version in sorted(expected)) or "404"


def _right(answer: Answer, expected: Collection[int]) -> bool:
    if not expected:
        return answer.status == 404
    return answer.status == 200 and answer.version in expected


def _who(answer: Answer) -> str:
    return f"v{answer.version}" if answer.status == 200 and answer.version is not None else str(answer.status)
