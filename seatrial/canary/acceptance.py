"""PASS of one step: the canary is shown to be nearly as good as the stable arm, or harmless in itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

import numpy as np

from seatrial.canary import ceiling, noninferiority
from seatrial.canary.ceiling import Ceiling
from seatrial.canary.counts import Counts
from seatrial.canary.noninferiority import NonInferiority


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """The average of two e-values, for H0: the ratio is `ratio_max` at least and the rate `harmless_rate` at least.

    Source: Vovk & Wang, E-values: calibration, combination and applications, Annals of Statistics 2021: the average
    of e-values is one, however they depend on each other.
    """

    by_ratio: NonInferiority | None
    """None: there is no stable arm, and the ceiling alone decides."""
    by_ceiling: Ceiling

    @property
    def log_e(self) -> float:
        """Log of the e-value now."""
        if self.by_ratio is None:
            return self.by_ceiling.log_e
        return float(np.logaddexp(self.by_ratio.log_e, self.by_ceiling.log_e) - log(2))

    def after(self, counts: Counts) -> Acceptance:
        """With one more interval."""
        by_ratio = None if self.by_ratio is None else self.by_ratio.after(counts)
        return replace(self, by_ratio=by_ratio, by_ceiling=self.by_ceiling.after(counts))


def begin(*, ratio_max: float | None, harmless_rate: float) -> Acceptance:
    """Nothing seen yet; `ratio_max` None: there is no stable arm."""
    by_ratio = None if ratio_max is None else noninferiority.begin(ratio_max)
    return Acceptance(by_ratio=by_ratio, by_ceiling=ceiling.begin(harmless_rate))
