"""Which checks package_model must have run; deploy_model asks the same function before it believes a verdict."""

from __future__ import annotations

from typing import Final

ALWAYS: Final = ("boots", "config", "golden_answers", "verdicts")
AGAINST_CHAMPION: Final = ("request_schema",)
"""Not required on a first release: nobody calls the model yet."""


def required(*, champion: bool) -> tuple[str, ...]:
    """The checks of package_model, sorted; `champion`: whether a version serves already."""
    return tuple(sorted((*ALWAYS, *(AGAINST_CHAMPION if champion else ()))))
