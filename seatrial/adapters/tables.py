"""Data files: CSV or Parquet, told apart by content, read as text so that the declared types decide."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from seatrial.adapters import csv_text
from seatrial.data.table import check_columns
from seatrial.errors import InvalidInput, shortened
from seatrial.spec import Data

PARQUET_MAGIC: Final = b"PAR1"
LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
SNIFFED_BYTES: Final = 64
UNREADABLE: Final = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, UnicodeDecodeError)
"""What Polars raises on damaged Parquet; a panic is no `Exception`."""
TIME_TEXT: Final = "%Y-%m-%dT%H:%M:%S%.6f+00:00"


def read_text(path: Path, data: Data) -> pl.DataFrame:
    """The declared columns of the file, every value as text, null where the cell is empty.

    A Parquet column keeps its values: numbers are written out, times in UTC with an offset. An empty string is missing,
    as it is in a CSV.

    Raises:
        InvalidInput: Missing, empty, a Git LFS pointer, neither CSV nor Parquet, ragged, or lacking a column.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(SNIFFED_BYTES)
    except OSError as error:
        raise InvalidInput(f"the data file cannot be read: {shortened(error)}") from error
    if not size:
        raise InvalidInput("the data file is empty; wanted one row per question")
    if head.startswith(LFS_POINTER):
        raise InvalidInput("the data file is a Git LFS pointer, not the data: fetch it with `git lfs pull`")
    wanted = declared(data)
    frame = _parquet(path, wanted) if head.startswith(PARQUET_MAGIC) else csv_text.read(path, wanted)
    if not frame.height:
        raise InvalidInput("the data has columns but no row; wanted one row per question")
    return frame


def declared(data: Data) -> list[str]:
    """The columns that the contract names, in the order of the table."""
    return [data.id, data.time, data.label, *(column.name for column in data.features)]


def _parquet(path: Path, wanted: list[str]) -> pl.DataFrame:
    try:
        schema = pl.read_parquet_schema(path)
    except UNREADABLE as error:
        raise InvalidInput(f"the data file starts as Parquet but cannot be read: {shortened(error)}") from error
    check_columns(list(schema), wanted)
    try:
        frame = pl.read_parquet(path, columns=wanted)
        return frame.select(_as_text(name, frame.schema[name]) for name in wanted)
    except UNREADABLE as error:
        raise InvalidInput(f"the data file starts as Parquet but cannot be read: {shortened(error)}") from error


def _as_text(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is None:
            return column.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f")
        return column.dt.convert_time_zone("UTC").dt.to_string(TIME_TEXT)
    if dtype.is_nested() or isinstance(dtype, pl.Binary | pl.Duration):
        raise InvalidInput(f"the column {name!r} is of type {dtype}; wanted a plain value per row")
    text = column.cast(pl.String)
    return pl.when(text != "").then(text).alias(name)
