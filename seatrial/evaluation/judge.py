"""What evaluate_model decides once every answer is on the table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seatrial.evaluation import checks
from seatrial.evaluation.bootstrap import difference
from seatrial.evaluation.metrics import Floats, score
from seatrial.evaluation.required import floors_of
from seatrial.spec import Spec
from seatrial.verdict import Check


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The version that serves, as far as it can be compared with."""

    same: Check
    """The check `differs`."""
    probability: Floats | None
    """Its answers on the held-out rows, shape (rows,); None when it gave none."""
    why_not: str = ""
    """Why it gave none."""


def judge(spec: Spec, label: Floats, candidate: Floats, champion: Champion | None, *, seed: int) -> tuple[Check, ...]:
    """The checks on the held-out rows.

    Without rows of both labels no metric is measured: those checks are missing, and the verdict is inconclusive.

    Args:
        spec: The model's spec.
        label: Shape (rows,), 0 or 1.
        candidate: The candidate's probabilities of label 1, shape (rows,).
        champion: None on a first release: then the floors alone judge.
        seed: For the bootstrap; the same seed gives the same checks.
    """
    sound = (checks.finite(candidate), checks.class_rows(label, spec.evaluation.class_rows_min))
    against = () if champion is None else (champion.same,)
    if len(np.unique(label)) < 2:
        return (*sound, *against)
    floors = (checks.floor(name, floor, score(floor.metric, label, candidate)) for name, floor in floors_of(spec))
    compared = () if champion is None else (_primary(spec, label, candidate, champion, seed=seed),)
    return (*sound, *against, *floors, *compared)


def _primary(spec: Spec, label: Floats, candidate: Floats, champion: Champion, *, seed: int) -> Check:
    rule = spec.evaluation.primary
    if champion.probability is None:
        return checks.not_compared(f"the champion cannot be compared with: {champion.why_not}")
    values = (score(rule.metric, label, candidate), score(rule.metric, label, champion.probability))
    if not all(math.isfinite(value) for value in values):
        return checks.not_compared(f"{rule.metric} is not defined on these rows; candidate and champion: {values}")
    found = difference(
        rule.metric,
        label,
        candidate,
        champion.probability,
        alpha=spec.evaluation.alpha,
        draws=spec.evaluation.draws,
        seed=seed,
    )
    return checks.primary(rule.metric, found, rule.margin, rows=len(label), values=values, alpha=spec.evaluation.alpha)
