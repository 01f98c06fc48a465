r"""CSV as text: one reader that counts the fields of every row, and calls nothing a row that is not one.

UTF-8 with or without a byte-order mark; separated by comma, semicolon, tab or bar; line ends `\n` or `\r\n`, also
mixed. Lines without any sign are left out. An empty cell, quoted or not, is a missing value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import polars as pl

from seatrial.data.table import check_columns
from seatrial.errors import InvalidInput, shortened

SEPARATORS: Final = ",;\t|"
CHUNK_ROWS: Final = 50_000
NAMED: Final = 5
"""Most ragged rows that a message names."""
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")


def read(path: Path, wanted: list[str]) -> pl.DataFrame:
    """The columns `wanted`, in that order, every value as text.

    Raises:
        InvalidInput: Not UTF-8 text, no CSV, a row of another length than the header, or a wanted column is missing or
            stands twice; rows are named by their line.
    """
    with path.open("rb") as file:
        if file.read(2) in _WIDE:
            raise InvalidInput("the data file is UTF-16 text; wanted UTF-8: save it again as UTF-8")
    separator = SEPARATORS[0]
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _Lines(file)
            header = next(iter(lines), "")
            separator = _separator(header, wanted)
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _rows(_Lines(file), separator, wanted)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the data file is neither Parquet nor UTF-8 text: {shortened(error)}") from error
    except csv.Error as error:
        raise InvalidInput(f"the data file is no CSV (separator {separator!r}): {shortened(error)}") from error


class _Lines:
    """The lines of a file, counted by how they end."""

    def __init__(self, file: Iterable[str]) -> None:
        self._file = file
        self.bare_returns = 0
        self.first_bare_return = 0

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._file, start=1):
            if "\0" in line:
                raise InvalidInput(f"the data file is neither Parquet nor CSV: line {number} holds zero bytes")
            if line.endswith("\r"):
                self.bare_returns += 1
                self.first_bare_return = self.first_bare_return or number
            yield line


def _rows(lines: _Lines, separator: str, wanted: list[str]) -> pl.DataFrame:
    reader = csv.reader(lines, delimiter=separator, strict=True)
    header = next((row for row in reader if row), [])
    check_columns(header, wanted)
    twice = sorted({name for name in wanted if header.count(name) > 1})
    if twice:
        raise InvalidInput(f"the header names the columns {twice} more than once; which one is meant cannot be known")
    places = [header.index(name) for name in wanted]
    chunks, chunk, ragged = [], list[list[str]](), list[str]()
    count = 0
    for row in reader:
        if not row:
            continue
        if len(row) != len(header):
            count += 1
            if count <= NAMED:
                ragged.append(f"line {reader.line_num} has {len(row)}")
            continue
        chunk.append([row[place] for place in places])
        if len(chunk) == CHUNK_ROWS:
            chunks.append(_frame(chunk, wanted))
            chunk = []
    if count:
        raise InvalidInput(
            f"{count} rows have another number of fields than the header's {len(header)}, separated by {separator!r}: "
            f"{', '.join(ragged)}{', …' if count > NAMED else ''}{_returns(lines)}"
        )
    if lines.bare_returns:
        raise InvalidInput(f"the data file has wrong line ends{_returns(lines)}")
    return pl.concat([*chunks, _frame(chunk, wanted)])


def _returns(lines: _Lines) -> str:
    if not lines.bare_returns:
        return ""
    return (
        f"; {lines.bare_returns} lines end in a bare carriage return, the first is line {lines.first_bare_return}: "
        "end lines with \\n or \\r\\n, and put a field that holds a carriage return in quotes"
    )


def _frame(rows: list[list[str]], wanted: list[str]) -> pl.DataFrame:
    columns = zip(*rows, strict=True) if rows else ((),) * len(wanted)
    return pl.DataFrame(
        [pl.Series(name, values, dtype=pl.String) for name, values in zip(wanted, columns, strict=True)]
    ).select(pl.when(pl.all() != "").then(pl.all()))


def _separator(header: str, wanted: list[str]) -> str:
    """The one that finds most of the wanted columns, then the one that makes most fields; a comma when none does."""

    def found(separator: str) -> tuple[int, int]:
        fields = next(csv.reader([header], delimiter=separator), [])
        return len(set(fields) & set(wanted)), len(fields)

    return max(SEPARATORS, key=found)
