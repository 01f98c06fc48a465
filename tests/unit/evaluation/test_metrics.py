"""Our metrics against scikit-learn's, and the laws that they keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as theirs

from seatrial.evaluation.metrics import score, weighted, worse_by
from seatrial.spec import Metric

Floats = NDArray[np.float64]
METRICS: list[Metric] = ["log_loss", "brier", "roc_auc", "pr_auc", "accuracy", "f1"]


def sklearn_value(metric: Metric, label: Floats, probability: Floats, weights: Floats) -> float:
    yes = probability >= 0.5
    return float(
        {
            "log_loss": lambda: theirs.log_loss(label, probability, sample_weight=weights, labels=[0, 1]),
            "brier": lambda: theirs.brier_score_loss(label, probability, sample_weight=weights),
            "roc_auc": lambda: theirs.roc_auc_score(label, probability, sample_weight=weights),
            "pr_auc": lambda: theirs.average_precision_score(label, probability, sample_weight=weights),
            "accuracy": lambda: theirs.accuracy_score(label, yes, sample_weight=weights),
            "f1": lambda: theirs.f1_score(label, yes, sample_weight=weights),
        }[metric]()
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_each_metric_is_scikit_learns_with_and_without_weights(metric: Metric, seed: int, *, ties: bool) -> None:
    random = np.random.default_rng(seed)
    label = (random.random(300) < 0.2).astype(float)
    probability = np.clip(random.normal(0.3, 0.2, 300) + 0.3 * label, 0.01, 0.99)
    if ties:
        probability = np.round(probability, 1).clip(0.01, 0.99)
    weights = random.integers(0, 4, 300).astype(float)
    plain = sklearn_value(metric, label, probability, np.ones(300))
    assert score(metric, label, probability) == pytest.approx(plain, abs=1e-12)
    drawn = weighted(metric, label, probability, np.stack([np.ones(300), weights]))
    assert drawn == pytest.approx([plain, sklearn_value(metric, label, probability, weights)], abs=1e-12)


@pytest.mark.parametrize(("metric", "only"), [("roc_auc", 0.0), ("roc_auc", 1.0), ("pr_auc", 0.0), ("f1", 0.0)])
def test_a_metric_that_one_class_alone_does_not_define_is_nan(metric: Metric, only: float) -> None:
    assert np.isnan(score(metric, np.full(10, only), np.linspace(0, 0.4, 10)))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_an_answer_that_is_no_number_has_no_score(metric: Metric, broken: float) -> None:
    assert np.isnan(score(metric, np.array([0.0, 1.0]), np.array([0.2, broken])))


@pytest.mark.parametrize("metric", METRICS)
def test_no_rows_have_no_score(metric: Metric) -> None:
    assert np.isnan(score(metric, np.array([]), np.array([])))


def test_log_loss_of_a_certain_mistake_is_finite() -> None:
    assert score("log_loss", np.array([1.0]), np.array([0.0])) == pytest.approx(-np.log(np.finfo(np.float32).eps))


@given(st.floats(0, 1), st.floats(0, 1))
def test_worse_runs_the_other_way_for_losses(candidate: float, champion: float) -> None:
    loss = worse_by("log_loss", np.array([candidate]), np.array([champion]))
    gain = worse_by("roc_auc", np.array([candidate]), np.array([champion]))
    assert loss == -gain
    assert (loss[0] > 0) == (candidate > champion)
