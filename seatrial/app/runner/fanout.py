"""`withParam`: a JSON list, one task for each entry, and what `{{item}}` is in each.

Source: expandTask and processItem in workflow/controller/{dag,operator}.go of Argo Workflows 4.0.5, as recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.errors import InvalidInput, shortened


@dataclass(frozen=True)
class Item:
    """One entry of the list.

    Args:
        name: Of its task: `release(0:carts)`.
        values: What `item`, or `item.<key>`, stands for.
    """

    name: str
    values: Mapping[str, str]

    def value(self, name: str) -> str:
        """What a reference to it means.

        Raises:
            InvalidInput: The entry has no such key.
        """
        if name not in self.values:
            raise InvalidInput(f"failed to resolve {{{{{name}}}}}")
        return self.values[name]


def items(task: str, text: str) -> list[Item]:
    """The entries of a `withParam`, in order.

    Raises:
        InvalidInput: It is no JSON list of texts, numbers, booleans and objects of these.
    """
    try:
        # Numbers stay as they were written.
        entries = json.loads(text, parse_int=_Raw, parse_float=_Raw)
    except ValueError:
        entries = None
    if not isinstance(entries, list):
        raise InvalidInput(f"withParam value could not be parsed as a JSON list: {shortened(text.strip())}")
    return [_item(task, number, entry) for number, entry in enumerate(entries)]


class _Raw(str):
    """A number's own text."""

    __slots__ = ()


def _item(task: str, number: int, entry: object) -> Item:
    if isinstance(entry, dict):
        values = {f"item.{key}": _plain(value) for key, value in entry.items()}
        told = ",".join(sorted(f"{key}:{_plain(value)}" for key, value in entry.items()))
        return Item(_name(task, number, told), {"item": _json(entry), **values})
    return Item(_name(task, number, _plain(entry)), {"item": _plain(entry)})


def _name(task: str, number: int, told: str) -> str:
    return f"{task}({number}:{told.replace('(', '').replace(')', '')})"


def _plain(entry: object) -> str:
    if isinstance(entry, bool):
        return "true" if entry else "false"
    if not isinstance(entry, str):
        raise InvalidInput(
            f"withParam knows texts, numbers, booleans and flat objects here; got {type(entry).__name__}"
        )
    return str(entry)


def _json(entry: Mapping[str, Any]) -> str:
    """The object as Go writes it: keys sorted, no blanks."""
    parts = [
        f"{json.dumps(key)}:{value if isinstance(value, _Raw) else json.dumps(value, ensure_ascii=False)}"
        for key, value in sorted(entry.items())
    ]
    return "{" + ",".join(parts) + "}"
