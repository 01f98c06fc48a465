"""validate_data as a whole: files in; a split, a signed verdict and a page out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes_release as made
import polars as pl
import pytest
import yaml

from seatrial import digests, verdict
from seatrial.data.required import REQUIRED
from seatrial.data.split import place
from seatrial.data.table import REASON
from seatrial.errors import IntegrityError, InvalidInput
from seatrial.verdict import Verdict
from steps.validate_data.__main__ import run
from steps.validate_data.contract import Inputs, Outputs

SHOPS = ["harbour", "hill", "söder, 'ö'"]
SUITE = {
    "expectations": [
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "shop", "value_set": SHOPS}},
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "visits", "min_value": 0, "max_value": 3}},
    ]
}


def rows(count: int = 400) -> pl.DataFrame:
    """Orders at different times, so that no two are the same event."""
    at = pl.format("2026-01-01T00:00:00.{}Z", pl.int_range(1000, count + 1000))
    frame: pl.DataFrame = made.rows(count).with_columns(at=at)
    return frame


def judge(root: Path, frame: pl.DataFrame, suite: Any = SUITE, name: str = "out") -> tuple[Outputs, Verdict]:
    case = made.case(root / name)
    (case.root / "source/expectations.json").write_text(json.dumps(suite))
    frame.write_csv(case.root / "data.csv")
    (case.root / "scratch").mkdir()
    inputs = Inputs(release=case.root / "release.json", source=case.root / "source", data=case.root / "data.csv")
    outputs = run(inputs, case.root / "scratch", made.KEY)
    return outputs, verdict.verify(outputs.verdict.read_bytes(), [made.KEY.public_key()])


def failed(found: Verdict) -> set[str]:
    return {check.name for check in found.checks if check.decision != "pass"}


def test_honest_data_passes_and_is_split(tmp_path: Path) -> None:
    outputs, found = judge(tmp_path, rows())
    assert (outputs.decision, outputs.reason, found.reasons) == ("pass", "", ())
    train, holdout = pl.read_parquet(outputs.train_rows), pl.read_parquet(outputs.holdout_rows)
    assert train.columns == holdout.columns == ["order", "at", "again", "price", "visits", "shop", "member"]
    assert sorted([*train["order"], *holdout["order"]]) == rows()["order"].to_list()
    assert pl.read_parquet(outputs.quarantine).is_empty()
    assert json.loads(outputs.profile.read_text())["rows"] == 400
    assert "<svg" in outputs.report.read_text()


def test_the_verdict_names_its_files_and_every_check(tmp_path: Path) -> None:
    outputs, found = judge(tmp_path, rows())
    assert found.judged == {
        "data": digests.of_file(tmp_path / "out/data.csv"),
        "train_rows": digests.of_file(outputs.train_rows),
        "holdout_rows": digests.of_file(outputs.holdout_rows),
    }
    assert {check.name for check in found.checks} == set(REQUIRED) == set(found.required)


def test_the_same_rows_in_another_order_give_the_same_split_byte_for_byte(tmp_path: Path) -> None:
    first, _ = judge(tmp_path, rows())
    again, _ = judge(tmp_path, rows().sample(fraction=1, shuffle=True, seed=3), name="again")
    for name in ("train_rows", "holdout_rows", "profile"):
        assert getattr(first, name).read_bytes() == getattr(again, name).read_bytes()


def copied(frame: pl.DataFrame, count: int, **changed: pl.Expr) -> pl.DataFrame:
    return pl.concat([frame, frame.head(count).with_columns(**changed)])


def renamed(frame: pl.DataFrame) -> pl.DataFrame:
    """One event of the training side once more, under another id of that side."""
    train = next(name for name in frame["order"] if place(name) >= 0.3)
    other = next(name for i in range(99) if place(name := f"x{i}") >= 0.3)
    return pl.concat([frame, frame.filter(order=train).with_columns(order=pl.lit(other))])


@pytest.mark.parametrize(
    ("poison", "flipped"),
    [
        (lambda f: f.head(8), {"row_count", "both_classes"}),
        (lambda f: copied(f, 5, again=1 - pl.col("again")), {"unique_ids"}),
        (lambda f: copied(f, 5), {"unique_ids"}),
        (renamed, {"duplicate_rows"}),
        (lambda f: f.with_columns(visits=pl.when(order="o00003").then(99).otherwise("visits")), {"expectations"}),
        (lambda f: f.with_columns(again=pl.when(order="o00003").then(2).otherwise("again")), {"quarantine"}),
        (lambda f: f.with_columns(again=pl.lit(0)), {"both_classes"}),
    ],
)
def test_a_poisoned_file_flips_its_check_and_no_other(
    tmp_path: Path, poison: Callable[[pl.DataFrame], pl.DataFrame], flipped: set[str]
) -> None:
    outputs, found = judge(tmp_path, poison(rows()))
    assert failed(found) == flipped
    assert outputs.decision == "fail"
    assert outputs.reason.split(":")[0] in flipped
    assert outputs.reason in found.reasons or outputs.reason.endswith("…")


def test_rows_that_break_the_contract_are_handed_on_with_their_reasons(tmp_path: Path) -> None:
    broken = rows().with_columns(
        visits=pl.when(order="o00003").then(pl.lit("1.5")).otherwise(pl.col("visits").cast(str))
    )
    outputs, _ = judge(tmp_path, broken)
    aside = pl.read_parquet(outputs.quarantine)
    assert aside.select("order", "visits", REASON).rows() == [("o00003", "1.5", "visits is no int64, got 1.5")]
    assert "o00003" not in pl.read_parquet(outputs.train_rows)["order"].to_list()


def test_data_without_a_good_row_fails_and_is_no_bug(tmp_path: Path) -> None:
    outputs, found = judge(tmp_path, rows().with_columns(visits=pl.lit("many")))
    assert outputs.decision == "fail"
    assert {"quarantine", "expectations", "both_classes"} <= failed(found)


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ({"expectations": []}, "an empty suite"),
        ({"expectations": [{"type": "expect_nothing", "kwargs": {}}]}, "unknown or wrongly written"),
    ],
)
def test_a_suite_that_could_not_say_no_is_refused(tmp_path: Path, suite: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        judge(tmp_path, rows(), suite)


def test_a_source_that_changed_since_it_was_resolved_is_refused(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c")
    spec = yaml.safe_load((case.root / "source/model.yaml").read_text())
    spec["data"]["quarantine_max_share"] = 1.0
    (case.root / "source/model.yaml").write_text(yaml.safe_dump(spec))
    inputs = Inputs(release=case.root / "release.json", source=case.root / "source", data=tmp_path)
    with pytest.raises(IntegrityError, match="the spec must be"):
        run(inputs, tmp_path, made.KEY)
