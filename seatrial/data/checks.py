"""The checks that every dataset gets: rows in, one check each out."""

from __future__ import annotations

from typing import Final

import polars as pl

from seatrial.data.table import REASON, Table
from seatrial.spec import Data
from seatrial.verdict import Check

CLASS_ROWS_MIN: Final = 20
"""Fewest rows of either label on either side of the split; with fewer nothing can be learnt or judged."""
NAMED: Final = 5
"""Most examples that a reason names."""


def row_count(table: Table, data: Data) -> Check:
    """Whether the rows that came, quarantined ones included, are as many as the contract says."""
    low, high = data.rows.min, data.rows.max
    return Check(
        name="row_count",
        decision="pass" if low <= table.height <= high else "fail",
        reason=f"{table.height} rows; wanted {low} to {high}",
        evidence={"rows": table.height, "min": low, "max": high},
    )


def quarantine(table: Table, data: Data) -> Check:
    """Whether few enough rows break the contract."""
    broken, share = table.quarantined.height, table.quarantined.height / table.height
    examples = table.quarantined.get_column(REASON).head(NAMED).to_list()
    first = f": {shorten(examples)}" if broken else ""
    most = data.quarantine_max_share
    return Check(
        name="quarantine",
        decision="pass" if share <= most else "fail",
        reason=f"{broken} of {table.height} rows break the contract; {_allowed(most)} may{first}",
        evidence={"rows": broken, "share": share, "max_share": most},
    )


def unique_ids(rows: pl.DataFrame, data: Data) -> Check:
    """Whether every id stands once."""
    twice = rows.filter(pl.col(data.id).is_duplicated()).get_column(data.id).unique(maintain_order=True)
    return Check(
        name="unique_ids",
        decision="fail" if twice.len() else "pass",
        reason=f"{twice.len()} ids in {data.id!r} stand more than once: {shorten(twice.head(NAMED).to_list())}"
        if twice.len()
        else f"every {data.id!r} stands once",
        evidence={"duplicated_ids": twice.len(), "rows": rows.height},
    )


def duplicate_rows(rows: pl.DataFrame, data: Data) -> Check:
    """Whether no row is another one under a new id: the same time, label and features.

    A row that stands twice with its id is one row here; `unique_ids` names it.
    """
    columns = [name for name in rows.columns if name != data.id]
    once = rows.unique()
    extra = once.height - once.unique(subset=columns).height
    return Check(
        name="duplicate_rows",
        decision="fail" if extra else "pass",
        reason=f"{extra} rows equal another in all but {data.id!r}: the same event under several ids"
        if extra
        else f"no two rows are equal in all but {data.id!r}",
        evidence={"duplicates": extra, "rows": rows.height},
    )


def both_classes(train: pl.DataFrame, holdout: pl.DataFrame, data: Data) -> Check:
    """Whether both labels are there on both sides of the split."""
    counts = {
        (side, label): int((rows.get_column(data.label) == label).sum())
        for side, rows in (("train", train), ("holdout", holdout))
        for label in (0, 1)
    }
    sides = [
        f"{counts[side, 1]} rows with {data.label} 1 and {counts[side, 0]} with 0 {where}"
        for side, where in (("train", "to train on"), ("holdout", "held out"))
    ]
    return Check(
        name="both_classes",
        decision="pass" if min(counts.values()) >= CLASS_ROWS_MIN else "fail",
        reason=f"{', '.join(sides)}; wanted {CLASS_ROWS_MIN} of each at least",
        evidence={f"{side}_{label}": count for (side, label), count in counts.items()},
    )


def split_overlap(train: pl.DataFrame, holdout: pl.DataFrame, data: Data) -> Check:
    """Whether no held-out row was trained on: neither its id, nor its content under another id."""
    ids = train.join(holdout, on=data.id, how="semi").height
    content = [name for name in train.columns if name != data.id]
    rows = holdout.join(train, on=content, how="semi", nulls_equal=True).height
    return Check(
        name="split_overlap",
        decision="fail" if ids or rows else "pass",
        reason=f"{ids} ids and {rows} rows are on both sides of the split; wanted none",
        evidence={"ids": ids, "rows": rows, "train_rows": train.height, "holdout_rows": holdout.height},
    )


def shorten(examples: list[str]) -> str:
    """The examples, quoted, each at most 80 characters."""
    return ", ".join(repr(example[:80]) for example in examples)


def _allowed(share: float) -> str:
    """A share as a person says it: `none`, or `at most 0.5 %`."""
    return f"at most {100 * share:.4g} %" if share else "none"
