"""Which checks evaluate_model must have run; deploy_model asks the same function before it believes a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from seatrial.spec import Floor, Spec

ALWAYS: Final = ("answers_match", "class_rows", "finite", "repeatable")
AGAINST_CHAMPION: Final = ("differs", "primary")
"""Not required on a first release: there is nothing to compare with, and the floors judge alone."""


def required(spec: Spec, *, champion: bool) -> tuple[str, ...]:
    """The checks that the spec asks for, sorted.

    Args:
        spec: The model's spec.
        champion: Whether a version serves already.
    """
    floors = (name for name, _ in floors_of(spec))
    return tuple(sorted((*ALWAYS, *floors, *(AGAINST_CHAMPION if champion else ()))))


def floors_of(spec: Spec) -> Iterator[tuple[str, Floor]]:
    """Check name and floor, like `floor_log_loss`; a second floor on the same metric is `floor_log_loss_2`."""
    seen: dict[str, int] = {}
    for floor in spec.evaluation.floors:
        seen[floor.metric] = seen.get(floor.metric, 0) + 1
        count = seen[floor.metric]
        yield f"floor_{floor.metric}" + (f"_{count}" if count > 1 else ""), floor
