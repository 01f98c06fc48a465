"""What the canary promises, held against many simulated ramps; the seeds are fixed."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from seatrial.canary import regression
from seatrial.canary.counts import Counts
from seatrial.canary.judge import begin, rule
from seatrial.spec import Canary, CanaryStep

ALPHA = 0.05
PER_LOOK = 2000
"""Requests in a look: 200 a second, every 10 s."""
BASE = 0.01


def counts(chance: np.random.Generator, requests: int, weight: float, ratio: float) -> Counts:
    canary = int(chance.binomial(requests, weight))
    return Counts(
        stable_requests=requests - canary,
        stable_errors=int(chance.binomial(requests - canary, BASE)),
        canary_requests=canary,
        canary_errors=int(chance.binomial(canary, BASE * ratio)),
    )


def test_an_unchanged_model_is_decided_fail_in_alpha_of_ramps_at_most() -> None:
    chance, runs, failed = np.random.default_rng(11), 400, 0
    weights = np.repeat([0.01, 0.05, 0.25, 0.5], 25)
    for _ in range(runs):
        found = regression.begin(1.25, looks=len(weights))
        for weight in weights:
            found = found.after(counts(chance, PER_LOOK, weight, 1.0))
        failed += found.highest >= log(1 / ALPHA)
    assert failed / runs <= ALPHA + 2.5 * sqrt(ALPHA * (1 - ALPHA) / runs)


def test_a_ratio_that_is_tolerated_is_no_failure_either() -> None:
    chance, runs, failed = np.random.default_rng(12), 300, 0
    for _ in range(runs):
        found = regression.begin(1.25, looks=60)
        for _ in range(60):
            found = found.after(counts(chance, PER_LOOK, 0.25, 1.25))
        failed += found.highest >= log(1 / ALPHA)
    assert failed / runs <= ALPHA + 2.5 * sqrt(ALPHA * (1 - ALPHA) / runs)


@pytest.mark.parametrize("weight", [0.01, 0.05, 0.25, 0.5])
def test_ten_times_the_errors_is_caught_within_400_canary_requests(weight: float) -> None:
    chance, runs, caught = np.random.default_rng(13), 200, 0
    per_look = round(20 / weight)
    for _ in range(runs):
        found, seen = regression.begin(1.25, looks=3600), 0
        while found.highest < log(1 / ALPHA) and seen < 380:
            one = counts(chance, per_look, weight, 10.0)
            found, seen = found.after(one), seen + one.canary_requests
        caught += found.highest >= log(1 / ALPHA) and seen <= 400
    assert caught / runs >= 0.95


def test_harm_that_sets_in_after_a_long_healthy_time_is_caught_soon() -> None:
    chance, runs, needed = np.random.default_rng(14), 60, []
    for _ in range(runs):
        found = regression.begin(1.25, looks=400)
        for _ in range(100):
            found = found.after(counts(chance, PER_LOOK, 0.5, 1.0))
        assert found.log_e < 0
        seen = 0
        while found.highest < log(1 / ALPHA) and seen < 5000:
            one = counts(chance, 100, 0.5, 10.0)
            found, seen = found.after(one), seen + one.canary_requests
        needed.append(seen)
    assert np.median(needed) <= 500


def test_a_candidate_at_the_limit_passes_a_step_in_alpha_of_runs_at_most() -> None:
    plan = Canary(steps=(CanaryStep(weight=50, min_s=1, max_s=400),), ratio_max=(2.0,), harmless_rate=0.01)
    chance, runs, passed = np.random.default_rng(15), 200, 0
    for _ in range(runs):
        evidence = begin(plan, champion=True)
        for second in range(1, 100):
            evidence = evidence.after(counts(chance, 400, 0.5, 2.0))
            ruling = rule(evidence, float(second))
            if ruling.decision != "hold":
                passed += ruling.decision == "pass"
                break
    assert passed / runs <= ALPHA + 2.5 * sqrt(ALPHA * (1 - ALPHA) / runs)
