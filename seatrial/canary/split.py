"""Whether the gateway splits as it was asked to: else nothing that it counts can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lgamma, log
from typing import Final

from seatrial.canary.counts import Counts

ALPHA: Final = 0.005
"""Chance to doubt a gateway that splits each request at random as asked, over all steps; a round robin is nearer."""
CONCENTRATION: Final = 100.0
"""k of the prior Beta(kθ, k(1−θ)). Source: Lindon & Malek 2022, section 5."""
TOLERATED: Final = 0.1
"""A share that is off by less than this part of the smaller arm is no fault, however surely it is known."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """A beta-binomial mixture over one step, for H0: each request goes to the canary with probability θ.

    O = B(kθ + s, k(1−θ) + n − s) / B(kθ, k(1−θ)) / (θ^s (1−θ)^(n−s)) for s canary requests of n.
    Source: Lindon & Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022, equation 4.
    """

    asked: float
    """θ, the configured share, in (0, 1)."""
    canary: int = 0
    requests: int = 0

    @property
    def share(self) -> float:
        """What the canary got so far; 0 without a request."""
        return self.canary / self.requests if self.requests else 0.0

    @property
    def log_e(self) -> float:
        """Log of the e-value now."""
        a, b = CONCENTRATION * self.asked, CONCENTRATION * (1 - self.asked)
        stable = self.requests - self.canary
        mixture = _log_beta(a + self.canary, b + stable) - _log_beta(a, b)
        return mixture - self.canary * log(self.asked) - stable * log(1 - self.asked)

    def wrong(self, steps: int) -> bool:
        """Whether the split is surely not the one asked for, and by enough to matter; `steps` share one α."""
        off = abs(self.share - self.asked) > TOLERATED * min(self.asked, 1 - self.asked)
        return off and self.log_e >= log(steps / ALPHA)

    def after(self, counts: Counts) -> Split:
        """With one more interval."""
        return replace(self, canary=self.canary + counts.canary_requests, requests=self.requests + counts.requests)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
