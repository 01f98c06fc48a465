"""Each check at its threshold, one step above and one below; and what is never a pass."""

from __future__ import annotations

from typing import Any

import fakes_release as made
import numpy as np
import pytest

from seatrial.evaluation import checks
from seatrial.evaluation.bootstrap import Difference
from seatrial.evaluation.judge import judge
from seatrial.evaluation.required import floors_of, required
from seatrial.spec import Decision, Floor, Metric
from seatrial.verdict import Check

STEP = 1e-9


def around(value: float) -> Difference:
    return Difference(estimate=value, at_least=value, at_most=value)


def primary(metric: Metric, found: Difference, margin: float = 0.02) -> Check:
    return checks.primary(metric, found, margin, rows=100, values=(0.5, 0.5), alpha=0.05)


@pytest.mark.parametrize("metric", ["log_loss", "roc_auc"])
@pytest.mark.parametrize(
    ("found", "decision"),
    [
        (around(0.02), "pass"),
        (around(0.02 + STEP), "fail"),
        (around(0.02 - STEP), "pass"),
        (Difference(estimate=0.0, at_least=-0.01, at_most=0.02 + STEP), "inconclusive"),
        (Difference(estimate=0.03, at_least=0.02, at_most=0.04), "inconclusive"),
        (Difference(estimate=0.03, at_least=0.02 + STEP, at_most=0.04), "fail"),
        (Difference(estimate=-0.5, at_least=-0.6, at_most=-0.4), "pass"),
        (Difference(estimate=0.0, at_least=float("nan"), at_most=float("nan")), "inconclusive"),
    ],
)
def test_the_margin_is_within_and_beyond_is_not(metric: Metric, found: Difference, decision: Decision) -> None:
    assert primary(metric, found).decision == decision


@pytest.mark.parametrize(
    ("floor", "value", "decision"),
    [
        (Floor(metric="log_loss", at_most=0.5), 0.5, "pass"),
        (Floor(metric="log_loss", at_most=0.5), 0.5 + STEP, "fail"),
        (Floor(metric="log_loss", at_most=0.5), 0.5 - STEP, "pass"),
        (Floor(metric="roc_auc", at_least=0.7), 0.7, "pass"),
        (Floor(metric="roc_auc", at_least=0.7), 0.7 - STEP, "fail"),
        (Floor(metric="roc_auc", at_least=0.7), 0.7 + STEP, "pass"),
        (Floor(metric="roc_auc", at_least=0.0), 0.0, "pass"),
        (Floor(metric="log_loss", at_most=0.5), float("nan"), "fail"),
        (Floor(metric="log_loss", at_most=0.5), float("-inf"), "fail"),
        (Floor(metric="roc_auc", at_least=0.7), float("nan"), "fail"),
    ],
)
def test_a_floor_holds_on_both_sides(floor: Floor, value: float, decision: Decision) -> None:
    assert checks.floor("floor_x", floor, value).decision == decision


@pytest.mark.parametrize(
    ("onnx", "decision"),
    [
        ([[0.5], [0.25]], "pass"),
        ([[0.5 + 2**-10], [0.25]], "pass"),
        ([[0.5 + 2**-9], [0.25]], "fail"),
        ([[float("nan")], [0.25]], "fail"),
        ([[0.5]], "fail"),
        ([[0.5, 0.1], [0.25, 0.1]], "fail"),
    ],
)
def test_onnx_may_differ_from_the_framework_by_the_tolerance(onnx: Any, decision: Decision) -> None:
    framework = np.array([[0.5], [0.25]])
    assert checks.answers_match(framework, np.array(onnx), 2**-10).decision == decision


def test_two_wrongs_are_no_match() -> None:
    nan = np.array([[np.nan]])
    assert checks.answers_match(nan, nan, 1.0).decision == "fail"


def test_no_parity_row_decides_nothing() -> None:
    assert checks.answers_match(np.empty((0, 1)), np.empty((0, 1)), 1e-5).decision == "inconclusive"


@pytest.mark.parametrize(("off", "decision"), [(0.0, "pass"), (0.9e-6, "pass"), (1.1e-6, "fail"), (np.nan, "fail")])
def test_processes_agree_within_a_millionth(off: float, decision: Decision) -> None:
    runs = [np.zeros((3, 1)), np.array([[0.0], [off], [0.0]]), np.zeros((3, 1))]
    assert checks.repeatable(runs).decision == decision


def test_two_processes_that_drift_apart_on_both_sides_count_together() -> None:
    runs = [np.array([[0.0]]), np.array([[0.8e-6]]), np.array([[-0.8e-6]])]
    assert checks.repeatable(runs).decision == "fail"


@pytest.mark.parametrize("runs", [[], [np.zeros((2, 1))], [np.empty((0, 1)), np.empty((0, 1))]])
def test_one_process_or_no_row_shows_nothing(runs: Any) -> None:
    assert checks.repeatable(runs).decision == "inconclusive"


@pytest.mark.parametrize(
    ("answers", "decision"),
    [
        ([0.0, 1.0], "pass"),
        ([0.5, np.nan], "fail"),
        ([0.5, np.inf], "fail"),
        ([1.0 + 1e-6, 0.5], "fail"),
        ([-1e-6, 0.5], "fail"),
        ([], "inconclusive"),
    ],
)
def test_an_answer_is_a_probability(answers: Any, decision: Decision) -> None:
    assert checks.finite(np.array(answers)).decision == decision


@pytest.mark.parametrize(("ones", "decision"), [(9, "inconclusive"), (10, "pass"), (90, "pass"), (91, "inconclusive")])
def test_the_rarer_class_decides_whether_there_is_enough(ones: int, decision: Decision) -> None:
    label = np.array([1.0] * ones + [0.0] * (100 - ones))
    assert checks.class_rows(label, 10).decision == decision


def test_the_same_bytes_are_no_change() -> None:
    assert checks.differs("sha256:a", "sha256:a").decision == "fail"
    assert checks.differs("sha256:a", "sha256:b").decision == "pass"


def test_required_names_one_check_per_floor_and_the_champion_adds_two() -> None:
    floors = [{"metric": "roc_auc", "at_least": 0.6}, {"metric": "roc_auc", "at_most": 0.99}]
    spec = made.spec_of(floors=floors)
    assert [name for name, _ in floors_of(spec)] == ["floor_roc_auc", "floor_roc_auc_2"]
    first = required(spec, champion=False)
    assert first == ("answers_match", "class_rows", "finite", "floor_roc_auc", "floor_roc_auc_2", "repeatable")
    assert set(required(spec, champion=True)) - set(first) == {"differs", "primary"}


def test_answers_that_are_no_numbers_fail_and_do_not_crash() -> None:
    label = np.array([0.0, 1.0] * 50)
    made_checks = judge(made.spec_of(), label, np.full(100, np.nan), None, seed=0)
    assert {c.name: c.decision for c in made_checks} == {
        "finite": "fail",
        "class_rows": "pass",
        "floor_log_loss": "fail",
        "floor_roc_auc": "fail",
    }
