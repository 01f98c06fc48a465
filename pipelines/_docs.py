"""The README's step table, made from the contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic.fields import FieldInfo

from pipelines._contracts import Contracted, contracts, janitor
from seatrial.errors import InvalidInput

BEGIN: Final = "<!-- steps -->"
END: Final = "<!-- /steps -->"


def step_table() -> str:
    """A Markdown table: one row per step, in the order of a release; the janitor's last."""
    rows = ["| step | promise | takes | gives | may touch |", "| --- | --- | --- | --- | --- |"]
    rows += [_row(contracted) for contracted in (*contracts(), janitor())]
    return "\n".join(rows) + "\n"


def with_table(document: str) -> str:
    """`document` with the table between its markers; without markers it is given back as it is.

    Raises:
        InvalidInput: One marker without the other, or in the wrong order.
    """
    if BEGIN not in document and END not in document:
        return document
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise InvalidInput(f"the step table stands between {BEGIN} and {END}; only one of them is there")
    return f"{head}{BEGIN}\n{step_table()}{END}{tail}"


def _row(contracted: Contracted) -> str:
    takes = _names({**contracted.inputs.parameters(), **contracted.inputs.artifacts()})
    gives = _names({**contracted.outputs.parameters(), **contracted.outputs.artifacts()})
    needs = ", ".join(contracted.step.needs) or "nothing"
    return f"| `{contracted.name}` | {contracted.step.summary} | {takes} | {gives} | {needs} |"


def _names(fields: Mapping[str, FieldInfo]) -> str:
    return ", ".join(fields) or "nothing"
