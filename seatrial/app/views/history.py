"""The ledger, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def page(facts: Mapping[str, Any], *, last: int) -> Group:
    """The latest changes, and what is wrong with the chain."""
    return Group(*_parts_of(facts, last))


def _parts_of(facts: Mapping[str, Any], last: int) -> Iterator[RenderableType]:
    entries = facts["entries"]
    if entries:
        yield _table(entries[-last:])
    else:
        yield Text(f"the ledger of {facts['model']} has no entry that can be read")
    if len(entries) > last:
        yield Text(f"  and {len(entries) - last} before them", style="dim")
    for trouble in facts["trouble"]:
        yield Text(f"  ! {trouble}", style="yellow")
    if facts["whole"] and entries:
        yield Text(f"  the chain of {len(entries)} is whole", style="dim")


def _table(entries: list[Mapping[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for column in ("#", "at (UTC)", "change", "weights", "by", "why"):
        table.add_column(column, no_wrap=column != "why")
    for entry in entries:
        weights = ", ".join(f"v{version} {percent} %" for version, percent in entry["weights"].items())
        cells = (entry["sequence"], entry["at"][:16].replace("T", " "), entry["action"], weights or "no traffic")
        table.add_row(*(Text(str(cell)) for cell in (*cells, entry["by"], entry["reason"])))
    return table
