"""PASS by `harmless_rate`: evidence that the canary's own error rate is under an absolute ceiling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from seatrial.canary.counts import Counts
from seatrial.canary.regression import Floats

SHARES: Final[Floats] = np.array([0.0, 0.1, 0.3])
"""Error rates that the truth may have, as shares of the ceiling."""
WEIGHTS: Final[Floats] = np.array([0.75, 0.125, 0.125])


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """An e-process over one step, for H0: the canary's error rate is `rate` at least.

    A binomial likelihood ratio per alternative q: (q/u)^errors · ((1−q)/(1−u))^(requests − errors), u the ceiling.
    With α = 5 % and a ceiling of 1 % it takes 299 clean requests for q = 0 alone (log 20 / −log 0.99), 310 for this
    mixture, which forgives some errors, and 378 within `acceptance`, which must allow for the other test.
    Source: Wald 1945, as a mixture; Ville's inequality.
    """

    rate: float
    """The ceiling u, in (0, 1)."""
    logs: Floats
    """Log likelihood ratio, one per alternative; −∞ for rate 0 after the first error."""

    @property
    def log_e(self) -> float:
        """Log of the e-value now."""
        return float(np.logaddexp.reduce(self.logs + np.log(WEIGHTS)))

    def after(self, counts: Counts) -> Ceiling:
        """With one more interval; the stable arm does not matter."""
        rates = SHARES * self.rate
        good = np.log((1 - rates) / (1 - self.rate))
        logs = self.logs + (counts.canary_requests - counts.canary_errors) * good
        if counts.canary_errors:
            with np.errstate(divide="ignore"):  # an alternative without errors is refuted by one
                logs = logs + counts.canary_errors * np.log(SHARES)
        return replace(self, logs=logs)


def begin(rate: float) -> Ceiling:
    """Nothing seen yet: the e-value is 1."""
    return Ceiling(rate=rate, logs=np.zeros(len(SHARES)))
