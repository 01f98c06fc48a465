"""Intervals in which the stable arm is in trouble: what both arms suffer from must not look like equality."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

from seatrial.canary.counts import Counts

SURGE: Final = 3.0
"""Times its past rate. Source: 30 s at 50 % errors in both arms let a candidate of ratio 2 pass in 69 to 96 % of
simulated ramps; without such intervals in 2.2 % at most."""


@dataclass(frozen=True, kw_only=True)
class Past:
    """The stable arm so far, without its surges."""

    errors: int = 0
    requests: int = 0

    @property
    def rate(self) -> float:
        """The stable error rate to expect: a half as long as nothing is known, so that no first interval is a surge.

        Source: Laplace's rule of succession.
        """
        return (self.errors + 1) / (self.requests + 2)

    def surges(self, counts: Counts) -> bool:
        """Whether the stable arm fails more than three times as often as before, by more than chance explains.

        Chance: three standard deviations of a Poisson count and one event, about 1 in 1,000.
        """
        expected = SURGE * self.rate * counts.stable_requests
        return counts.stable_errors > expected + 3 * sqrt(expected) + 1

    def after(self, counts: Counts) -> Past:
        """With one more interval; a surge is not taken for the past."""
        if self.surges(counts):
            return self
        return replace(self, errors=self.errors + counts.stable_errors, requests=self.requests + counts.stable_requests)
