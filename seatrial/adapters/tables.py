"""Data files: CSV or Parquet, told apart by content, read as text so that the declared types decide."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import polars as pl

from seatrial.data.table import check_columns
from seatrial.errors import InvalidInput, shortened
from seatrial.spec import Data

PARQUET_MAGIC: Final = b"PAR1"
LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
SNIFFED_BYTES: Final = 65_536
TIME_TEXT: Final = "%Y-%m-%dT%H:%M:%S%.6f+00:00"


def read_text(path: Path, data: Data) -> pl.DataFrame:
    """The declared columns of the file, every value as text, null where the cell is empty.

    A Parquet column keeps its values: numbers are written out, times in UTC with an offset.

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
    frame = _parquet(path, data) if head.startswith(PARQUET_MAGIC) else _csv(path, head, data)
    if not frame.height:
        raise InvalidInput("the data has columns but no row; wanted one row per question")
    return frame


def _parquet(path: Path, data: Data) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidInput(f"the data file starts as Parquet but cannot be read: {shortened(error)}") from error
    check_columns(frame.columns, data)
    return frame.select(_as_text(frame, name) for name in _declared(data))


def _as_text(frame: pl.DataFrame, name: str) -> pl.Expr:
    dtype = frame.schema[name]
    column = pl.col(name)
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is None:
            return column.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f")
        return column.dt.convert_time_zone("UTC").dt.to_string(TIME_TEXT)
    if dtype.is_nested() or dtype == pl.Binary:
        raise InvalidInput(f"the column {name!r} is of type {dtype}; wanted a plain value per row")
    return column.cast(pl.String)


def _csv(path: Path, head: bytes, data: Data) -> pl.DataFrame:
    try:
        sample = head.decode("utf-8-sig", errors="strict" if len(head) < SNIFFED_BYTES else "ignore")
        separator = csv.Sniffer().sniff(sample, delimiters=",;\t|").delimiter
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the data file is neither Parquet nor UTF-8 text: {shortened(error)}") from error
    except csv.Error:
        separator = ","
    if "\0" in sample:
        raise InvalidInput("the data file is neither Parquet nor CSV: it holds zero bytes")
    try:
        frame = pl.read_csv(path, separator=separator, infer_schema=False, truncate_ragged_lines=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidInput(
            f"the data file is no CSV with one number of fields in every row (separator {separator!r}): "
            f"{shortened(error)}"
        ) from error
    check_columns(frame.columns, data)
    return frame.select(_declared(data))


def _declared(data: Data) -> list[str]:
    return [data.id, data.time, data.label, *(column.name for column in data.features)]
