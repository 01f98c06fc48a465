"""The declared types: text in, typed rows out, and each value that does not fit by its row.

The declared type is the type. Nothing is coerced: `1.5` is no int64, `NA` is a word, `007` keeps its zeros as a string.
Times need an offset (or `Z`) and become UTC. An empty cell is a missing value.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

import polars as pl

from seatrial.errors import InvalidInput, shortened
from seatrial.spec import Data, Dtype

REASON: Final = "quarantine reason"
"""Column of the quarantined rows that says why; no feature can bear a name with a space."""

POLARS: Final[dict[Dtype, type[pl.DataType]]] = {
    "float32": pl.Float32,
    "int64": pl.Int64,
    "string": pl.String,
    "bool": pl.Boolean,
}
_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_TIME_FORMATS = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows that keep the contract, and those that do not."""

    rows: pl.DataFrame
    """id (String), time (UTC), label (Int64), then the features with their declared types; in id order."""
    quarantined: pl.DataFrame
    """As they came, as text, with `REASON`."""

    @property
    def height(self) -> int:
        """Rows in all."""
        return self.rows.height + self.quarantined.height


def check_columns(found: list[str], wanted: list[str]) -> None:
    """Refuse data that lacks a wanted column.

    Raises:
        InvalidInput: Names the missing ones, and a column that differs only by case or by signs that cannot be seen.
    """
    missing = [name for name in wanted if name not in found]
    if not missing:
        return
    near = {name: next((f for f in found if _seen(f) == _seen(name)), None) for name in missing}
    hints = [f"{name!r} looks like {other!r}" for name, other in near.items() if other is not None]
    raise InvalidInput(
        f"the data lacks the columns {missing}; it has {shortened(found)}"
        + (f"; {', '.join(hints)}, apart from case, spaces or signs that cannot be seen" if hints else "")
    )


def typed(text: pl.DataFrame, data: Data) -> Table:
    """The table in `text`, whose declared columns are all strings; other columns are left out.

    Args:
        text: Columns as checked by `check_columns`, of type String; null where the cell is empty.
        data: The contract.
    """
    faults: list[pl.Expr] = []
    values: list[pl.Expr] = [pl.col(data.id)]
    faults.append(_fault(data.id, pl.col(data.id).is_null(), "has no value"))
    moment = _moment(data.time)
    values.append(moment.alias(data.time))
    faults.append(_fault(data.time, pl.col(data.time).is_null(), "has no value"))
    faults.append(_fault(data.time, pl.col(data.time).is_not_null() & moment.is_null(), "is no time with an offset"))
    values.append(pl.col(data.label).cast(pl.Int64, strict=False))
    faults.append(_fault(data.label, ~pl.col(data.label).is_in(["0", "1"]).fill_null(value=False), "is not 0 or 1"))
    for column in data.features:
        value = _value(column.name, column.dtype)
        values.append(value.alias(column.name))
        if not column.nullable:
            faults.append(_fault(column.name, pl.col(column.name).is_null(), "has no value"))
        broken = pl.col(column.name).is_not_null() & value.is_null()
        faults.append(_fault(column.name, broken, f"is no {column.dtype}"))
    names = [data.id, data.time, data.label, *(column.name for column in data.features)]
    reason = pl.concat_str(faults, separator="; ", ignore_nulls=True)
    judged = text.select(*names, pl.when(reason != "").then(reason).alias(REASON))
    good = judged.filter(pl.col(REASON).is_null()).select(*values).sort(data.id, data.time, maintain_order=True)
    return Table(rows=good, quarantined=judged.filter(pl.col(REASON).is_not_null()))


def _value(name: str, dtype: Dtype) -> pl.Expr:
    text = pl.col(name)
    if dtype == "string":
        return text
    if dtype == "bool":
        lower = text.str.to_lowercase()
        return (
            pl.when(lower.is_in(["true", "1"]))
            .then(pl.lit(value=True))
            .when(lower.is_in(["false", "0"]))
            .then(pl.lit(value=False))
        )
    pattern = _INTEGER if dtype == "int64" else _NUMBER
    value = pl.when(text.str.contains(pattern)).then(text).cast(POLARS[dtype], strict=False)
    return pl.when(value.is_finite()).then(value) if dtype == "float32" else value


def _moment(name: str) -> pl.Expr:
    text = pl.col(name).str.replace(r"Z$", "+00:00")
    return pl.coalesce(
        text.str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False) for form in _TIME_FORMATS
    )


def _fault(name: str, broken: pl.Expr, what: str) -> pl.Expr:
    return pl.when(broken).then(
        pl.format("{} {}, got {}", pl.lit(name), pl.lit(what), pl.col(name).fill_null("nothing").str.slice(0, 80))
    )


def _seen(name: str) -> str:
    """The name as an eye sees it: no spaces, controls or format signs, compatible signs as one, case folded."""
    plain = unicodedata.normalize("NFKC", name)
    return "".join(sign for sign in plain if unicodedata.category(sign)[0] not in "CZ").casefold()
