"""The metrics of a yes-or-no question, each defined once, over weighted rows.

A bootstrap draw is a row of whole-number weights; the plain metric is the one draw in which every weight is 1. So a
point estimate and its bound cannot come from two definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from seatrial.spec import LOWER_IS_BETTER, Metric

Floats: TypeAlias = NDArray[np.float64]
Definition: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""Label (rows,) of 0 and 1, probability (rows,) in [0, 1], weights (draws, rows) → one value per draw, (draws,)."""

PROBABILITY_MIN: Final = float(np.finfo(np.float32).eps)
"""Log loss takes no probability as nearer to 0 or 1 than a float32 can tell. Source: scikit-learn's `log_loss`."""
YES_FROM: Final = 0.5
"""A probability of at least this is an answer of 1, for accuracy and f1."""


def score(metric: Metric, label: Floats, probability: Floats) -> float:
    """The metric on these rows; NaN when it is not defined on them: no rows, one class only, an answer that is NaN."""
    if len(label) == 0 or not np.isfinite(probability).all():
        return float("nan")
    return float(weighted(metric, label, probability, np.ones((1, len(label))))[0])


def weighted(metric: Metric, label: Floats, probability: Floats, weights: Floats) -> Floats:
    """The metric in each draw, shape (draws,); see `Definition`."""
    return _DEFINITIONS[metric](label, probability, weights)


def worse_by(metric: Metric, candidate: Floats, champion: Floats) -> Floats:
    """How much worse the candidate is, in the metric's units: positive is worse, whichever way the metric runs."""
    return candidate - champion if metric in LOWER_IS_BETTER else champion - candidate


def _log_loss(label: Floats, probability: Floats, weights: Floats) -> Floats:
    """−Σ w (y ln p + (1 − y) ln(1 − p)) / Σ w. Source: Good, Rational decisions, 1952."""
    p = np.clip(probability, PROBABILITY_MIN, 1 - PROBABILITY_MIN)
    return _mean(-(label * np.log(p) + (1 - label) * np.log1p(-p)), weights)


def _brier(label: Floats, probability: Floats, weights: Floats) -> Floats:
    """Σ w (p − y)² / Σ w. Source: Brier, Verification of forecasts expressed in terms of probability, 1950."""
    return _mean((probability - label) ** 2, weights)


def _accuracy(label: Floats, probability: Floats, weights: Floats) -> Floats:
    """Share of rows whose answer, at the threshold YES_FROM, is their label."""
    return _mean(((probability >= YES_FROM) == (label == 1)).astype(np.float64), weights)


def _f1(label: Floats, probability: Floats, weights: Floats) -> Floats:
    """2 TP / (2 TP + FP + FN) at the threshold YES_FROM; NaN without any of the three. Source: van Rijsbergen, 1979."""
    yes = probability >= YES_FROM
    true_positive = weights @ (yes & (label == 1)).astype(np.float64)
    wrong = weights @ (yes != (label == 1)).astype(np.float64)
    return _ratio(2 * true_positive, 2 * true_positive + wrong)


def _roc_auc(label: Floats, probability: Floats, weights: Floats) -> Floats:
    """P(a positive scores over a negative) + ½ P(they tie). Source: Hanley and McNeil, Radiology 143, 1982."""
    positive, negative = _by_score(label, probability, weights)
    below = np.cumsum(negative, axis=1) - negative
    return _ratio((positive * (below + negative / 2)).sum(axis=1), positive.sum(axis=1) * negative.sum(axis=1))


def _pr_auc(label: Floats, probability: Floats, weights: Floats) -> Floats:
    """Average precision: Σ (recall_k − recall_{k−1}) precision_k over falling thresholds, ties at once.

    Source: Manning et al., Introduction to Information Retrieval, section 8.4; no interpolation, as in scikit-learn.
    """
    positive, negative = _by_score(label, probability, weights)
    positive, negative = positive[:, ::-1], negative[:, ::-1]
    found = np.cumsum(positive, axis=1)
    precision = _ratio(found, found + np.cumsum(negative, axis=1), otherwise=0.0)
    return _ratio((positive * precision).sum(axis=1), positive.sum(axis=1))


def _by_score(label: Floats, probability: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weight of positives and of negatives at each distinct score, rising, each of shape (draws, scores)."""
    order = np.argsort(probability, kind="stable")
    starts = np.flatnonzero(np.diff(probability[order], prepend=-np.inf))
    at_score = weights[:, order]
    positives = at_score * label[order]
    return np.add.reduceat(positives, starts, axis=1), np.add.reduceat(at_score - positives, starts, axis=1)


def _mean(values: Floats, weights: Floats) -> Floats:
    return _ratio(weights @ values, weights.sum(axis=1))


def _ratio(part: Floats, whole: Floats, *, otherwise: float = float("nan")) -> Floats:
    result: Floats = np.full_like(part, otherwise, dtype=np.float64)
    np.divide(part, whole, out=result, where=whole > 0)
    return result


_DEFINITIONS: Final[dict[Metric, Definition]] = {
    "log_loss": _log_loss,
    "brier": _brier,
    "roc_auc": _roc_auc,
    "pr_auc": _pr_auc,
    "accuracy": _accuracy,
    "f1": _f1,
}
