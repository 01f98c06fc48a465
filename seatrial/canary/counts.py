"""What happened between two scrapes, per arm."""

from __future__ import annotations

from typing import Final

from pydantic import Field, model_validator

from seatrial.ports import ArmCounts, Scrape
from seatrial.spec import Closed

GAP: Final = 3.0
"""A pause of more than so many intervals between two scrapes is a gap."""
NOTHING: Final = ArmCounts(requests=0, errors=0)


class Counts(Closed):
    """Requests and errors of the weighted rule in one interval; both arms of the same two scrapes."""

    stable_requests: int = Field(default=0, ge=0)
    stable_errors: int = Field(default=0, ge=0)
    canary_requests: int = Field(default=0, ge=0)
    canary_errors: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _errors_are_requests(self) -> Counts:
        if self.stable_errors > self.stable_requests or self.canary_errors > self.canary_requests:
            raise ValueError(f"an arm cannot have more errors than requests; got {self!r}")
        return self

    @property
    def requests(self) -> int:
        """Of both arms."""
        return self.stable_requests + self.canary_requests

    @property
    def share(self) -> float:
        """The observed split ρ: the canary's part of all requests, in [0, 1]; 0 when there were none."""
        return self.canary_requests / self.requests if self.requests else 0.0


def between(before: Scrape, after: Scrape, *, stable: int | None, canary: int, interval_s: float) -> Counts | str:
    """The counts from `before` to `after`; a text that says why, when they cannot be trusted.

    A version that is not in a scrape has not been asked yet. The caller gives two scrapes of one and the same weight.

    Args:
        before: The earlier scrape.
        after: The later one.
        stable: The champion's version; None: there is none.
        canary: The candidate's version.
        interval_s: Seconds between two looks as planned.
    """
    seconds = (after.at - before.at).total_seconds()
    if seconds <= 0:
        return "the gateway's clock stood still or went back"
    if seconds > GAP * interval_s + 1.0:
        return f"a gap: {seconds:.1f} s between two scrapes"
    canary_counts = _delta(before, after, canary)
    stable_counts = NOTHING if stable is None else _delta(before, after, stable)
    if canary_counts is None or stable_counts is None:
        return "the gateway's counters were reset"
    return Counts(
        stable_requests=stable_counts.requests,
        stable_errors=stable_counts.errors,
        canary_requests=canary_counts.requests,
        canary_errors=canary_counts.errors,
    )


def _delta(before: Scrape, after: Scrape, version: int) -> ArmCounts | None:
    """None: a counter fell, or more errors than requests were added."""
    old, new = before.versions.get(version, NOTHING), after.versions.get(version, NOTHING)
    requests, errors = new.requests - old.requests, new.errors - old.errors
    return ArmCounts(requests=requests, errors=errors) if 0 <= errors <= requests else None
