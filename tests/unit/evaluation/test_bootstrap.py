"""The bounds of the paired bootstrap: what they cover, and what they do not depend on."""

from __future__ import annotations

import time

import numpy as np
import pytest

from seatrial.evaluation.bootstrap import Difference, difference, rows_to_decide
from seatrial.spec import Metric

METRICS: list[Metric] = ["log_loss", "brier", "roc_auc", "pr_auc", "accuracy", "f1"]


def sample(rows: int, seed: int, *, share: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, a good model's answers, and a noisier one's."""
    random = np.random.default_rng(seed)
    logit = random.normal(np.log(share / (1 - share)), 1.2, rows)
    label = (random.random(rows) < 1 / (1 + np.exp(-logit))).astype(float)
    return label, 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-(logit + random.normal(0, 0.8, rows))))


@pytest.mark.parametrize("metric", METRICS)
def test_a_noisier_model_is_shown_worse_whichever_way_the_metric_runs(metric: Metric) -> None:
    label, good, noisy = sample(4000, 1)
    worse = difference(metric, label, noisy, good, alpha=0.05, draws=1000, seed=0)
    better = difference(metric, label, good, noisy, alpha=0.05, draws=1000, seed=0)
    assert worse.at_least > 0
    assert better.at_most < 0
    assert worse.estimate == pytest.approx(-better.estimate)
    assert worse.at_least < worse.estimate < worse.at_most


@pytest.mark.parametrize("metric", METRICS)
def test_equal_answers_differ_by_nothing(metric: Metric) -> None:
    label, good, _ = sample(200, 2)
    assert difference(metric, label, good, good, alpha=0.05, draws=1000, seed=0) == Difference(
        estimate=0.0, at_least=0.0, at_most=0.0
    )


def test_the_seed_alone_decides_the_draws() -> None:
    label, good, noisy = sample(300, 3)
    first, again, other = (
        difference("log_loss", label, noisy, good, alpha=0.05, draws=1000, seed=seed) for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("metric", ["log_loss", "roc_auc"])
def test_a_candidate_on_the_margin_passes_about_as_often_as_alpha_says(metric: Metric) -> None:
    label, good, noisy = sample(200_000, 4)
    truth = difference(metric, label, noisy, good, alpha=0.05, draws=20, seed=0).estimate
    passed = 0
    for seed in range(200):
        chosen = np.random.default_rng(seed).choice(len(label), 400, replace=False)
        bounds = difference(metric, label[chosen], noisy[chosen], good[chosen], alpha=0.05, draws=400, seed=seed)
        passed += bounds.at_most <= truth
    assert 1 <= passed <= 22, "5 % of 200 is 10; more than 22 or none has a chance under 1 in 1,000"


def test_twenty_thousand_rows_take_seconds() -> None:
    label, good, noisy = sample(20_000, 5)
    started = time.process_time()
    difference("log_loss", label, noisy, good, alpha=0.05, draws=4000, seed=0)
    assert time.process_time() - started < 5


def test_the_rows_to_decide_follow_the_square_of_the_distance() -> None:
    found = Difference(estimate=0.0, at_least=-0.02, at_most=0.02)
    assert rows_to_decide(found, 0.01, 1000) == 4000
    assert rows_to_decide(found, 0.02, 1000) == 1000
    beyond = Difference(estimate=0.03, at_least=0.01, at_most=0.05)
    assert rows_to_decide(beyond, 0.02, 1000) == 4000


def test_on_the_margin_no_number_of_rows_decides() -> None:
    assert rows_to_decide(Difference(estimate=0.01, at_least=0.0, at_most=0.02), 0.01, 1000) is None
