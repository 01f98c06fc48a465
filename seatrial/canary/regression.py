"""FAIL: evidence that the canary's error rate is more than `ratio_tolerated` times what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seatrial.canary.counts import Counts

FACTORS: Final[NDArray[np.float64]] = np.array([1.2, 1.6, 2.4, 4.0, 8.0, 24.0])
"""Alternatives as multiples of the tolerated ratio; at 1.25 they are the ratios 1.5, 2, 3, 5, 10 and 30."""
RATE_MAX: Final = 0.999

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Regression:
    """An e-process over the whole ramp, for H0: the ratio of error rates is `tolerated` at most.

    Given the bad events of an interval, each came from the canary with probability p(r) = rρ / (rρ + 1 − ρ), where ρ
    is the share of requests that the canary really had in that interval. So outages that hit both arms cancel. For
    each alternative r the likelihood ratio multiplies by (p(r)/p(r0))^c · ((1−p(r))/(1−p(r0)))^b for c bad canary and
    b bad stable events. Half of the weight starts with the ramp; the other half is spread evenly over a new start at
    each planned look, so that harm that sets in late is not outvoted by a healthy past.
    Source: Lindon & Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022; Shiryaev-Roberts
    recursion for the restarts. With the configured instead of the observed share, a real share that is 10 % higher
    gives 42 % false alarms (simulated).
    """

    tolerated: float
    """r0 ≥ 1."""
    looks: int
    """Planned looks ≥ 1, over which the restarts are spread."""
    seen: int = 0
    start: Floats
    """Log likelihood ratio since the start, one per alternative."""
    restarted: Floats
    """Log of the weighted sum of the likelihood ratios since each restart, one per alternative."""
    highest: float = 0.0
    """The largest log e-value so far: a failure stays one."""

    @property
    def log_e(self) -> float:
        """Log of the e-value now."""
        rest = max(self.looks - self.seen, 0) / self.looks
        mass = log(rest) if rest > 0 else -inf
        return float(np.logaddexp(_log_mean(self.start), np.logaddexp(_log_mean(self.restarted), mass)) - log(2))

    def after(self, counts: Counts) -> Regression:
        """With one more interval of two arms; one in which an arm had no request says nothing."""
        if not counts.canary_requests or not counts.stable_requests:
            return self
        odds = counts.share / (1 - counts.share)
        null, others = self.tolerated, self.tolerated * FACTORS
        # p(r) = r·odds / (1 + r·odds), so log p(r)/p(r0) = log r/r0 − log (1 + r·odds)/(1 + r0·odds).
        stable = -np.log((1 + others * odds) / (1 + null * odds))
        canary = np.log(others / null) + stable
        return self._moved(counts.canary_errors * canary + counts.stable_errors * stable)

    def after_alone(self, counts: Counts, limit: float) -> Regression:
        """With one more interval in which only the canary serves, for H0: its error rate is `limit` at most."""
        if not counts.canary_requests:
            return self
        rates = np.minimum(limit * FACTORS, RATE_MAX)
        bad, good = np.log(rates / limit), np.log((1 - rates) / (1 - limit))
        return self._moved(counts.canary_errors * bad + (counts.canary_requests - counts.canary_errors) * good)

    def _moved(self, step: Floats) -> Regression:
        new = -log(self.looks) if self.seen < self.looks else -inf
        moved = replace(
            self,
            seen=self.seen + 1,
            start=self.start + step,
            restarted=np.logaddexp(self.restarted, new) + step,
        )
        return replace(moved, highest=max(self.highest, moved.log_e))


def begin(tolerated: float, looks: int) -> Regression:
    """Nothing seen yet: the e-value is 1."""
    none: Any = np.full(len(FACTORS), -inf)
    return Regression(tolerated=tolerated, looks=looks, start=np.zeros(len(FACTORS)), restarted=none)


def _log_mean(logs: Floats) -> float:
    return float(np.logaddexp.reduce(logs) - log(len(logs)))
