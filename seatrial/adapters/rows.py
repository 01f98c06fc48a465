"""The rows that validate_data wrote: a Parquet file in, arrays by feature out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial.errors import InvalidInput, shortened
from seatrial.spec import Column, Dtype

_NUMPY: Final[dict[Dtype, Any]] = {"float32": np.float32, "int64": np.int64, "string": np.str_, "bool": np.bool_}


def read(path: Path) -> pl.DataFrame:
    """The rows in a Parquet file.

    Raises:
        InvalidInput: It is no Parquet file.
    """
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InvalidInput(f"{path.name} must be a Parquet file of validate_data: {shortened(error)}") from error


def columns(rows: pl.DataFrame, features: tuple[Column, ...]) -> dict[str, NDArray[Any]]:
    """The features of `rows` as a model takes them, each of shape (rows, 1).

    A missing float32 is NaN and a missing string is empty; the other types have no value that says "missing".

    Raises:
        InvalidInput: A feature is no column, or an int64 or bool is missing somewhere.
    """
    return {feature.name: _values(rows, feature) for feature in features}


def _values(rows: pl.DataFrame, feature: Column) -> NDArray[Any]:
    if feature.name not in rows.columns:
        raise InvalidInput(f"the rows need the feature {feature.name!r}; they have {rows.columns}")
    series = rows[feature.name]
    if feature.dtype == "float32":
        series = series.cast(pl.Float32).fill_null(float("nan"))
    elif feature.dtype == "string":
        series = series.fill_null("")
    if series.null_count():
        raise InvalidInput(
            f"{series.null_count()} rows have no {feature.name!r}: a missing {feature.dtype} cannot be sent to a "
            "model; declare the feature as float32, or fill it in the data"
        )
    return np.asarray(series.to_list(), dtype=_NUMPY[feature.dtype]).reshape(-1, 1)


def labels(rows: pl.DataFrame, label: str) -> NDArray[np.float64]:
    """The label column, shape (rows,), 0 or 1.

    Raises:
        InvalidInput: There is no such column, or it holds something else.
    """
    if label not in rows.columns:
        raise InvalidInput(f"the rows need the label column {label!r}; they have {rows.columns}")
    try:
        values = rows[label].cast(pl.Float64).to_numpy()
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"the label {label!r} must be 0 or 1: {shortened(error)}") from error
    if not np.isin(values, (0.0, 1.0)).all():
        raise InvalidInput(f"the label {label!r} must be 0 or 1 in every row; got {shortened(np.unique(values)[:5])}")
    return values
