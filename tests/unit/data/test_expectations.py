"""The owner's suite: whatever does not run, or looks at nothing, never passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from seatrial.adapters import expectations
from seatrial.errors import InvalidInput
from seatrial.verdict import Check

ROWS = pl.DataFrame(
    {
        "n": [1, 2, 3] * 20,
        "word": ["x", "y", None] * 20,
        "size": [1.0, 2.0, None] * 20,
        "nothing": pl.Series([None] * 60, dtype=pl.String),
        "gap": pl.Series([None] * 60, dtype=pl.Float32),
        "yes": [True, True, False] * 20,
    }
)


def judged(kind: str, rows: pl.DataFrame = ROWS, **kwargs: Any) -> Check:
    return expectations.check(rows, [{"type": kind, "kwargs": kwargs}])


@pytest.mark.parametrize(
    ("kind", "holds", "breaks"),
    [
        ("expect_column_values_to_be_between", {"column": "n", "max_value": 3}, {"column": "n", "max_value": 2}),
        ("expect_column_values_to_not_be_null", {"column": "n"}, {"column": "word"}),
        (
            "expect_column_values_to_be_in_set",
            {"column": "word", "value_set": ["x", "y"]},
            {"column": "word", "value_set": ["x"]},
        ),
        (
            "expect_column_values_to_match_regex",
            {"column": "word", "regex": "^[xy]$"},
            {"column": "word", "regex": "^x$"},
        ),
        ("expect_column_mean_to_be_between", {"column": "n", "max_value": 2}, {"column": "n", "max_value": 1.99}),
        ("expect_table_row_count_to_be_between", {"min_value": 60}, {"min_value": 61}),
        ("expect_column_to_exist", {"column": "n"}, {"column": "m"}),
        ("expect_column_values_to_be_null", {"column": "nothing"}, {"column": "word"}),
        (
            "expect_column_quantile_values_to_be_between",
            {"column": "n", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[2, 2]]}},
            {"column": "n", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[3, 9]]}},
        ),
        (
            "expect_column_kl_divergence_to_be_less_than",
            {"column": "word", "partition_object": {"values": ["x", "y"], "weights": [0.5, 0.5]}, "threshold": 0.1},
            {"column": "word", "partition_object": {"values": ["x", "y"], "weights": [0.99, 0.01]}, "threshold": 0.1},
        ),
    ],
)
def test_an_expectation_passes_when_it_is_met_and_fails_when_not(
    kind: str, holds: dict[str, Any], breaks: dict[str, Any]
) -> None:
    assert judged(kind, **holds).decision == "pass", judged(kind, **holds).reason
    found = judged(kind, **breaks)
    assert found.decision == "fail"
    assert kind in found.reason


def test_a_failed_one_says_how_many_values_of_all_and_which() -> None:
    reason = judged("expect_column_values_to_be_in_set", column="word", value_set=["x"]).reason
    assert reason.endswith("20 of 60 values (20 missing), like ['y', 'y', 'y']")


def test_one_failed_expectation_fails_the_check_whatever_the_others_say() -> None:
    good = {"type": "expect_column_to_exist", "kwargs": {"column": "n"}}
    bad = {"type": "expect_column_to_exist", "kwargs": {"column": "m"}}
    found = expectations.check(ROWS, [good, bad, good | {"kwargs": {"column": "word"}}])
    assert found.decision == "fail"
    assert (found.evidence["expectations"], found.evidence["failed"]) == (3, 1)


@pytest.mark.parametrize("mostly", [0, 0.0])
def test_a_share_of_zero_is_zero_and_not_one(mostly: float) -> None:
    assert judged("expect_column_values_to_be_in_set", column="word", value_set=["q"], mostly=mostly).decision == "pass"
    assert judged("expect_column_values_to_be_in_set", column="word", value_set=["q"], mostly=0.01).decision == "fail"


@pytest.mark.parametrize("mostly", [0, 1])
@pytest.mark.parametrize("column", ["nothing", "gap"])
def test_a_column_without_any_value_meets_no_expectation_on_values(column: str, mostly: int) -> None:
    found = judged("expect_column_values_to_be_in_set", column=column, value_set=["q"], mostly=mostly)
    assert found.decision == "fail"
    assert f"every value of {column!r} is missing" in found.reason
    for kind in ("expect_column_values_to_be_unique", "expect_column_values_to_not_be_null"):
        assert judged(kind, column=column).decision == "fail"
    assert judged("expect_column_mean_to_be_between", column=column, max_value=9).decision == "fail"
    distinct = judged("expect_column_distinct_values_to_be_in_set", column=column, value_set=["q"])
    assert distinct.decision == "fail"
    pair = judged("expect_column_pair_values_to_be_equal", column_A="n", column_B=column)
    assert pair.decision == "fail"


def test_no_rows_meet_no_expectation() -> None:
    found = judged("expect_column_values_to_be_in_set", ROWS.head(0), column="word", value_set=["x"])
    assert (found.decision, "no row to look at" in found.reason) == ("fail", True)
    assert expectations.check(ROWS, []).decision == "fail"


def test_a_column_outside_the_contract_is_named_without_a_traceback() -> None:
    reason = judged("expect_column_values_to_be_in_set", column="m", value_set=["x"]).reason
    assert "the contract declares no column 'm'" in reason
    assert "Traceback" not in reason


@pytest.mark.parametrize(
    ("kind", "kwargs", "told"),
    [
        ("expect_column_values_to_match_regex", {"column": "word", "regex": "("}, "missing )"),
        ("expect_column_values_to_be_between", {"column": "word", "min_value": 0}, "same type"),
        ("expect_column_mean_to_be_between", {"column": "word", "min_value": 0}, "could not be judged"),
    ],
)
def test_an_expectation_that_raises_fails_with_its_message(kind: str, kwargs: dict[str, Any], told: str) -> None:
    found = judged(kind, **kwargs)
    assert found.decision == "fail"
    assert told in found.reason
    assert "Traceback" not in found.reason


@pytest.mark.parametrize(
    ("kind", "kwargs", "told"),
    [
        ("expect_column_values_to_be_in_sett", {"column": "n", "value_set": [1]}, "unknown or wrongly written"),
        ("", {}, "unknown or wrongly written"),
        ("expect_column_values_to_be_in_set", {"column": "n", "valu_set": [1]}, "valu_set"),
        ("expect_column_values_to_be_in_set", {"value_set": [1]}, "column"),
        ("expect_column_values_to_be_between", {"column": "n"}, "cannot both be None"),
        ("expect_column_values_to_be_in_set", {"column": "n", "value_set": [1], "mostly": 1.5}, "mostly"),
        ("expect_column_values_to_be_between", {"column": "n", "min_value": {"$PARAMETER": "low"}}, "low"),
    ],
)
def test_an_expectation_that_is_wrongly_written_is_refused(kind: str, kwargs: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        judged(kind, **kwargs)


def test_how_to_report_is_ours_to_say() -> None:
    for ours in ({"result_format": "BOOLEAN_ONLY"}, {"catch_exceptions": False}, {"batch_id": "x"}):
        found = judged("expect_column_values_to_match_regex", column="word", regex="(", **ours)
        assert found.decision == "fail"


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        ("", "is empty; a Great Expectations suite is wanted"),
        (" \n", "is empty; a Great Expectations suite is wanted"),
        ("[]", "must be a Great Expectations suite"),
        ('{"name": "s"}', "must be a Great Expectations suite"),
        ('{"expectations": [{"kwargs": {}}]}', "'type'"),
        ('{"expectations": [{"type": "expect_column_to_exist"}]}', "'kwargs'"),
        ('{"expectations": ["expect_column_to_exist"]}', "must be a Great Expectations suite"),
        ('{"expectations": []}', "an empty suite says nothing"),
        ("[" * 100_000, "must be a Great Expectations suite"),
    ],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path: Path, suite: str, told: str) -> None:
    (tmp_path / "expectations.json").write_text(suite)
    with pytest.raises(InvalidInput, match=told):
        expectations.read(tmp_path / "expectations.json")


def test_a_model_without_a_suite_is_told_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has no none\.json: write a Great Expectations suite"):
        expectations.read(tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="cannot be read"):
        expectations.read(tmp_path)


def test_a_condition_on_rows_is_refused_since_it_is_code(tmp_path: Path) -> None:
    kwargs = {"column": "n", "min_value": 0, "row_condition": "@__import__('os')", "condition_parser": "pandas"}
    suite = {"expectations": [{"type": "expect_column_values_to_be_between", "kwargs": kwargs}]}
    (tmp_path / "s.json").write_text(json.dumps(suite))
    with pytest.raises(InvalidInput, match="row_condition, which is code"):
        expectations.read(tmp_path / "s.json")


def test_nobody_is_told_anything() -> None:
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"


def test_a_whole_validation_opens_no_connection_and_writes_no_file(tmp_path: Path) -> None:
    program = """
import sys
seen = []
def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"): seen.append((event, args[-1]))
sys.addaudithook(hook)
import polars as pl
from seatrial.adapters import expectations
rows = pl.DataFrame({"n": [1, 2]})
expectations.check(rows, [{"type": "expect_column_to_exist", "kwargs": {"column": "n"}}])
print(seen)
"""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert "Calculating" not in done.stderr
