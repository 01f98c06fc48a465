"""Which checks run_canary must have run."""

from __future__ import annotations


def required(*, champion: bool) -> tuple[str, ...]:
    """The checks, sorted; without a champion there is no split to check.

    Args:
        champion: Whether a version serves already.
    """
    return ("errors", "golden_answers", "read_back", *(("split",) if champion else ()))
