"""What a dataset looks like, in numbers: kept with the papers, so that the next release can be compared with it."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

EDGES: Final = 101
"""Quantiles of a number column, minimum and maximum included."""
FREQUENT: Final = 50
"""Most values of a text column that are counted one by one; the rest is pooled."""


def profile(rows: pl.DataFrame) -> dict[str, Any]:
    """Per column: type, rows, missing share, and quantiles of numbers or counts of words."""
    return {"rows": rows.height, "columns": {name: _column(rows.get_column(name)) for name in rows.columns}}


def _column(values: pl.Series) -> dict[str, Any]:
    about: dict[str, Any] = {"dtype": str(values.dtype), "missing_share": values.null_count() / max(1, values.len())}
    present = values.drop_nulls()
    if values.dtype.is_numeric():
        edges = [present.quantile(index / (EDGES - 1), "nearest") for index in range(EDGES)] if present.len() else []
        return {**about, "quantiles": edges, "mean": present.mean()}
    if values.dtype.is_temporal():
        first, last = present.min(), present.max()
        return {**about, "first": str(first), "last": str(last)}
    return {**about, "distinct": present.n_unique(), **_words(present.cast(pl.String))}


def _words(present: pl.Series) -> dict[str, Any]:
    """Counts of the frequent values; none of a column in which every value is another, such as an id."""
    if present.n_unique() == present.len():
        return {"counts": {}, "pooled": present.len()}
    counts = present.alias("value").value_counts(name="count").sort(["count", "value"], descending=[True, False])
    top = counts.head(FREQUENT)
    return {"counts": dict(top.iter_rows()), "pooled": present.len() - sum(top.get_column("count").to_list())}
