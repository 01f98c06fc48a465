"""What each gate before deploy must have been asked for; no verdict that was asked for less is believed."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.data.required import REQUIRED as DATA_CHECKS
from seatrial.errors import IntegrityError
from seatrial.evaluation.required import required as evaluation_checks
from seatrial.spec import Spec
from seatrial.triton.required import required as package_checks
from seatrial.verdict import Gate, Verdict


def of(spec: Spec, *, champion: bool) -> dict[Gate, tuple[str, ...]]:
    """Gate → its checks; `champion`: whether a version served when the release was resolved."""
    return {
        "validate_data": DATA_CHECKS,
        "evaluate_model": evaluation_checks(spec, champion=champion),
        "package_model": package_checks(champion=champion),
    }


def check(verdicts: Iterable[Verdict], spec: Spec, *, champion: bool) -> None:
    """See that every verdict was asked for all that the spec lists for its gate.

    Raises:
        IntegrityError: One was asked for less.
    """
    listed = of(spec, champion=champion)
    for one in verdicts:
        missing = sorted(set(listed[one.gate]) - set(one.required))
        if missing:
            raise IntegrityError(f"{one.gate}'s verdict was made without the checks {missing}, which the spec asks for")
