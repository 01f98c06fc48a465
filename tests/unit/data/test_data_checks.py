"""The checks of every dataset: each on both sides of its line, each flipped by its own fault."""

from __future__ import annotations

from typing import Any

import fakes_release as made
import polars as pl
import pytest

from seatrial.data import checks
from seatrial.data.pictures import columns_table
from seatrial.data.profile import FREQUENT, profile
from seatrial.data.split import place, split
from seatrial.data.table import REASON, Table
from seatrial.spec import Data, RowCount

DATA = made.spec_of().data
ROWS = made.rows(400).with_columns(at=pl.format("2026-01-01T00:00:00.{}Z", pl.int_range(100, pl.len() + 100)))


def contract(**changed: Any) -> Data:
    return DATA.model_copy(update=changed)


def table(rows: int, broken: int = 0) -> Table:
    return Table(
        rows=ROWS.head(rows),
        quarantined=pl.DataFrame({REASON: ["visits is no int64, got x"] * broken}, {REASON: pl.String}),
    )


@pytest.mark.parametrize(("rows", "decision"), [(9, "fail"), (10, "pass"), (20, "pass"), (21, "fail")])
def test_the_row_count_may_be_its_limits(rows: int, decision: str) -> None:
    data = contract(rows=RowCount(min=10, max=20))
    assert checks.row_count(table(rows), data).decision == decision


def test_rows_put_aside_count_as_rows_that_came() -> None:
    data = contract(rows=RowCount(min=10, max=20))
    assert checks.row_count(table(6, broken=4), data).decision == "pass"
    assert checks.row_count(table(16, broken=5), data).decision == "fail"


@pytest.mark.parametrize(
    ("share", "broken", "decision"),
    [(0.0, 0, "pass"), (0.0, 1, "fail"), (0.05, 5, "pass"), (0.05, 6, "fail"), (1.0, 100, "pass")],
)
def test_the_share_put_aside_may_be_its_limit(share: float, broken: int, decision: str) -> None:
    found = checks.quarantine(table(100 - broken, broken), contract(quarantine_max_share=share))
    assert found.decision == decision
    assert ("visits is no int64, got x" in found.reason) == (broken > 0)


def judged(rows: pl.DataFrame) -> dict[str, str]:
    train, holdout = split(rows, by="order", holdout_share=0.3)
    found = [
        checks.unique_ids(rows, DATA),
        checks.duplicate_rows(rows, DATA),
        checks.split_overlap(train, holdout, DATA),
        checks.both_classes(train, holdout, DATA),
    ]
    return {check.name: check.decision for check in found}


def failed(rows: pl.DataFrame) -> set[str]:
    return {name for name, decision in judged(rows).items() if decision == "fail"}


def test_honest_rows_pass_every_check() -> None:
    assert set(judged(ROWS).values()) == {"pass"}


def test_an_id_with_two_answers_flips_unique_ids_only() -> None:
    assert failed(pl.concat([ROWS, ROWS.head(1).with_columns(again=1 - pl.col("again"))])) == {"unique_ids"}


def test_a_row_that_stands_twice_flips_unique_ids_only() -> None:
    assert failed(pl.concat([ROWS, ROWS.head(3)])) == {"unique_ids"}


def test_the_ids_that_stand_twice_are_named() -> None:
    check = checks.unique_ids(pl.concat([ROWS, ROWS.head(2)]), DATA)
    assert "2 ids" in check.reason
    assert "'o00000', 'o00001'" in check.reason


def other_id(side: bool) -> str:  # noqa: FBT001 - which side
    """An id that falls on the held-out side, or not."""
    return next(name for i in range(99) if (place(name := f"x{i}") < 0.3) == side)


def test_the_same_event_under_another_id_on_the_same_side_flips_duplicate_rows_only() -> None:
    first = ROWS.head(1)
    side = place(first["order"][0]) < 0.3
    assert failed(pl.concat([ROWS, first.with_columns(order=pl.lit(other_id(side)))])) == {"duplicate_rows"}


def test_the_same_event_on_both_sides_of_the_split_is_seen_by_split_overlap_too() -> None:
    first = ROWS.head(1)
    side = place(first["order"][0]) < 0.3
    copied = pl.concat([ROWS, first.with_columns(order=pl.lit(other_id(not side)))])
    assert failed(copied) == {"duplicate_rows", "split_overlap"}


def test_rows_that_differ_in_the_time_alone_are_different_events() -> None:
    other = ROWS.head(1).with_columns(order=pl.lit("x"), at=pl.lit("2026-01-02T00:00:00Z"))
    assert failed(pl.concat([ROWS, other])) == set()


def test_an_id_or_a_row_on_both_sides_flips_split_overlap() -> None:
    train, holdout = ROWS.head(200), ROWS.tail(200)
    assert checks.split_overlap(train, holdout, DATA).decision == "pass"
    same_id = pl.concat([holdout, ROWS.head(1).with_columns(again=1 - pl.col("again"))])
    assert checks.split_overlap(train, same_id, DATA).evidence["ids"] == 1
    same_row = pl.concat([holdout, ROWS.filter(pl.col("price").is_null()).head(1).with_columns(order=pl.lit("x"))])
    found = checks.split_overlap(train, same_row, DATA)
    assert (found.decision, found.evidence["ids"], found.evidence["rows"]) == ("fail", 0, 1)


@pytest.mark.parametrize(("ones", "decision"), [(19, "fail"), (20, "pass")])
def test_both_labels_are_needed_on_both_sides(ones: int, decision: str) -> None:
    side = ROWS.head(100).with_columns(again=(pl.int_range(pl.len()) < ones).cast(pl.Int64))
    enough = ROWS.head(100).with_columns(again=(pl.int_range(pl.len()) < 50).cast(pl.Int64))
    assert checks.both_classes(side, enough, DATA).decision == decision
    assert checks.both_classes(enough, side, DATA).decision == decision
    flipped = side.with_columns(again=1 - pl.col("again"))
    assert checks.both_classes(flipped, enough, DATA).decision == decision


def test_no_check_breaks_on_data_without_a_good_row() -> None:
    assert judged(ROWS.head(0)) == {
        "unique_ids": "pass", "duplicate_rows": "pass", "split_overlap": "pass", "both_classes": "fail"
    }  # fmt: skip
    assert checks.quarantine(table(0, broken=5), DATA).decision == "fail"
    assert "<table>" in columns_table(profile(ROWS.head(0)))


def test_an_id_falls_on_the_same_side_in_every_dataset() -> None:
    one = set(split(ROWS, by="order", holdout_share=0.3)[1]["order"])
    other = set(split(made.rows(200, seed=9).reverse(), by="order", holdout_share=0.3)[1]["order"])
    assert other == {name for name in one if name < "o00200"}
    assert place("a") == pytest.approx(0.7913742705223816, abs=1e-15)


def test_about_the_share_that_is_asked_for_is_held_out() -> None:
    train, holdout = split(made.rows(4000), by="order", holdout_share=0.3)
    assert train.height + holdout.height == 4000
    assert abs(holdout.height / 4000 - 0.3) < 0.03


def test_a_profile_tells_of_each_column_what_its_kind_allows() -> None:
    rows = ROWS.with_columns(at=pl.lit("2026-01-01").str.to_datetime(time_zone="UTC"), n=pl.col("shop"))
    about = profile(rows)["columns"]
    assert about["price"]["missing_share"] == ROWS["price"].null_count() / 400
    assert len(about["price"]["quantiles"]) == 101
    assert about["price"]["quantiles"][0] == ROWS["price"].min()
    assert sum(about["shop"]["counts"].values()) == 400
    assert about["n"]["counts"] == about["shop"]["counts"]
    assert about["order"] == {"dtype": "String", "missing_share": 0.0, "distinct": 400, "counts": {}, "pooled": 400}
    assert about["at"]["first"].startswith("2026-01-01")


def test_a_profile_pools_rare_words() -> None:
    words = pl.DataFrame({"word": [f"w{i}" for i in range(60)] * 2 + ["w59"]})
    about = profile(words)["columns"]["word"]
    assert len(about["counts"]) == FREQUENT
    assert about["counts"]["w59"] == 3
    assert about["pooled"] == 121 - sum(about["counts"].values())


def test_pictures_escape_what_the_data_says() -> None:
    page = columns_table(profile(pl.DataFrame({"<b>": ["<script>", "<script>", "x"]})))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("share", "says"),
    [(0.0, "none may"), (0.005, "at most 0.5 % may"), (0.00004, "at most 0.004 % may"), (1.0, "at most 100 % may")],
)
def test_how_many_rows_may_break_the_contract_is_said_in_words(share: float, says: str) -> None:
    found = checks.quarantine(table(99, 1), contract(quarantine_max_share=share))
    assert found.reason == f"1 of 100 rows break the contract; {says}: 'visits is no int64, got x'"


def test_the_rows_of_each_label_are_said_in_words() -> None:
    ones = ROWS.with_columns(again=1)
    found = checks.both_classes(ROWS.head(0), ones.head(30), DATA)
    assert found.reason == (
        "0 rows with again 1 and 0 with 0 to train on, 30 rows with again 1 and 0 with 0 held out; "
        "wanted 20 of each at least"
    )
    assert found.evidence == {"train_0": 0, "train_1": 0, "holdout_0": 0, "holdout_1": 30}
