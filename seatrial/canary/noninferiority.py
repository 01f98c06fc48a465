"""PASS by ratio: evidence that the canary's error rate is less than `ratio_max` times the stable one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Final

import numpy as np

from seatrial.canary.counts import Counts
from seatrial.canary.regression import Floats

ALTERNATIVES: Final[Floats] = np.array([0.25, 0.5, 0.75, 1.0])
"""Ratios that the truth may have; all under every `ratio_max`."""


@dataclass(frozen=True, kw_only=True)
class NonInferiority:
    """An e-process over one step, for H0: the ratio of error rates is `ratio_max` at least.

    The reverse of `seatrial.canary.regression`. Without a bad event it stays 1: zero errors never pass by ratio.
    Source: as there.
    """

    ratio_max: float
    """Over 1."""
    logs: Floats
    """Log likelihood ratio, one per alternative."""

    @property
    def log_e(self) -> float:
        """Log of the e-value now."""
        return float(np.logaddexp.reduce(self.logs) - log(len(self.logs)))

    def after(self, counts: Counts) -> NonInferiority:
        """With one more interval; one in which an arm had no request says nothing."""
        if not counts.canary_requests or not counts.stable_requests:
            return self
        odds = counts.share / (1 - counts.share)
        stable = np.log((1 + self.ratio_max * odds) / (1 + ALTERNATIVES * odds))
        canary = np.log(ALTERNATIVES / self.ratio_max) + stable
        return replace(self, logs=self.logs + counts.canary_errors * canary + counts.stable_errors * stable)


def begin(ratio_max: float) -> NonInferiority:
    """Nothing seen yet: the e-value is 1."""
    return NonInferiority(ratio_max=ratio_max, logs=np.zeros(len(ALTERNATIVES)))
