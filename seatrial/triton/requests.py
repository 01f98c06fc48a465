"""Rows as Open Inference Protocol requests, and answers to compare with.

Requests are JSON by RFC 8259, which has no NaN and no infinity. Triton would take a bare NaN, but not every client,
proxy and log on the way does; so a row with a value that is not finite becomes no request.
Source: open-inference-protocol rest/inference_rest.md; Triton's binary data extension for `binary_data`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import IntegrityError, shortened
from seatrial.ports import Answer
from seatrial.spec import Dtype, Spec

TOLERANCE: Final = 1e-4
"""Most that an answer over the wire may differ from ours."""
GOLDEN_ROWS: Final = 16
GOLDEN_EDGES_MAX: Final = 48
"""Most rows taken because a feature is smallest or largest there."""
REPLAY_ROWS_MAX: Final = 2000
PROTOCOL_TYPE: Final[dict[Dtype, str]] = {"float32": "FP32", "int64": "INT64", "string": "BYTES", "bool": "BOOL"}

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""Feature name → values of shape (rows, 1)."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A request and its right answer."""

    id: str
    request: dict[str, Any]
    """An Open Inference Protocol request body."""
    answer: Mapping[str, Sequence[float]]
    """Output name → values of the one row."""
    tolerance: float = TOLERANCE

    def apart(self, outputs: Mapping[str, Sequence[float]]) -> float:
        """How far `outputs` are from the right answer at most; infinite when one is missing, misshapen or no number."""
        return max(_apart(values, outputs.get(name)) for name, values in self.answer.items())

    def fault(self, answer: Answer, version: int) -> str:
        """What is wrong with an answer, in words; empty: it is right, and this version gave it."""
        if answer.status != 200:
            return f"status {answer.status}, {answer.error or 'no words'}"
        if answer.version != version:
            return f"v{answer.version} answered, v{version} was asked"
        apart = self.apart(answer.outputs)
        return "" if apart <= self.tolerance else f"{apart:.3g} off the right answer, {self.tolerance:.3g} is tolerated"


def sendable(columns: Columns) -> NDArray[np.intp]:
    """The rows that JSON can carry, rising."""
    fine = np.ones(len(next(iter(columns.values()))), dtype=bool)
    for values in columns.values():
        if np.issubdtype(values.dtype, np.floating):
            fine &= np.isfinite(values).ravel()
    return np.flatnonzero(fine)


def golden_rows(columns: Columns) -> list[int]:
    """About `GOLDEN_ROWS` sendable rows: where a feature is smallest or largest, and evenly spaced others; rising."""
    rows = sendable(columns)
    chosen: dict[int, None] = {}
    for values in columns.values():
        if len(rows) and len(chosen) < GOLDEN_EDGES_MAX:
            order = np.argsort(values[rows].ravel(), kind="stable")
            chosen[int(rows[order[0]])] = None
            chosen[int(rows[order[-1]])] = None
    others = [row for row in spread(rows, 2 * GOLDEN_ROWS) if row not in chosen]
    return sorted([*chosen, *others[: max(0, GOLDEN_ROWS - len(chosen))]])


def spread(rows: NDArray[np.intp], most: int) -> list[int]:
    """At most `most` of `rows`, evenly spaced from the first to the last."""
    places = np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int))
    return [int(row) for row in rows[places]]


def request(spec: Spec, columns: Columns, row: int, *, name: str) -> dict[str, Any]:
    """The request body that asks for the answer to one row, as JSON in JSON out."""
    return {
        "id": name,
        "inputs": [
            {
                "name": feature.name,
                "shape": [1, 1],
                "datatype": PROTOCOL_TYPE[feature.dtype],
                "data": [_plain(columns[feature.name][row, 0])],
            }
            for feature in spec.data.features
        ],
        "outputs": [{"name": spec.serving.output.name, "parameters": {"binary_data": False}}],
    }


def examples(
    spec: Spec, columns: Columns, answers: NDArray[np.float32], rows: Iterable[int], names: Sequence[str]
) -> Iterator[Example]:
    """A request and its answer for each of `rows`.

    Args:
        spec: The model's spec.
        columns: All rows, feature by feature.
        answers: The right answers of all rows, shape (rows, width).
        rows: Which rows; each must be sendable.
        names: The id of each of all rows.
    """
    output = spec.serving.output.name
    for row in rows:
        yield Example(
            id=names[row],
            request=request(spec, columns, row, name=names[row]),
            answer={output: [float(value) for value in answers[row]]},
        )


def body(example: Example) -> bytes:
    """What goes over the wire."""
    return json.dumps(example.request, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def lines(chosen: Iterable[Example]) -> bytes:
    """Examples as JSON lines; `parse(lines(x)) == x`."""
    return b"".join(
        json.dumps(
            {"id": e.id, "request": e.request, "answer": e.answer, "tolerance": e.tolerance},
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        ).encode()
        + b"\n"
        for e in chosen
    )


def parse(text: bytes) -> list[Example]:
    """The examples in JSON lines that `lines` wrote.

    Raises:
        IntegrityError: A line is none of ours.
    """
    return [_example(number, line) for number, line in enumerate(text.splitlines(), start=1)]


def _example(number: int, line: bytes) -> Example:
    try:
        return Example(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise IntegrityError(f"line {number} of the kept requests cannot be read: {shortened(error)}") from error


def _plain(value: Any) -> str | int | float | bool:  # noqa: ANN401 - a NumPy scalar of any dtype
    plain: str | int | float | bool = value.item()
    return plain


def _apart(wanted: Sequence[float], came: Sequence[float] | None) -> float:
    if came is None or len(came) != len(wanted):
        return float("inf")
    difference = float(np.abs(np.subtract(wanted, came)).max())
    return difference if np.isfinite(difference) else float("inf")
