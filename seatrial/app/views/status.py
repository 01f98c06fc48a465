"""The status page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def page(facts: Mapping[str, Any]) -> Group:
    """Everything that `status` found, for people."""
    return Group(*_parts_of(facts))


def _parts_of(facts: Mapping[str, Any]) -> Iterator[RenderableType]:
    if facts.get("sandbox") == "down":
        yield Text("the sandbox is down: nobody serves; `seatrial up` starts it, with what it served before")
    for model in facts["models"]:
        yield _serving(model)
        if model["services"]:
            yield _table("service", "ready", "why", rows=[(s["name"], s["ready"], s["why"]) for s in model["services"]])
        if model["outcomes"]:
            yield _table("release", "version", "ended", "why", rows=[_outcome(facts) for facts in model["outcomes"]])
        for trouble in model["trouble"]:
            yield Text(f"  ! {trouble}", style="yellow")
        yield Text()
    rows = [(p["name"], p["state"], str(p["pid"] or ""), str(p["port"] or ""), p["note"]) for p in facts["parts"]]
    if rows:
        yield _table("part", "state", "pid", "port", "note", rows=rows)


def _serving(model: Mapping[str, Any]) -> Table:
    table = Table(box=None, show_header=False, title=model["model"], title_justify="left", title_style="bold")
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in _lines(model):
        table.add_row(f"  {name}", Text(value))
    return table


def _lines(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if model["route_known"]:
        yield from _route(model)
    else:
        yield "route", "cannot be read: who is to serve is not known"
        if model["ledger"]:
            yield "served last", f"{_version(model['ledger']['champion'])}, by the ledger"
    yield (
        "answers",
        ", ".join(f"{who} {count} of {sum(model['answers'].values())}" for who, count in model["answers"].items())
        or "not counted",
    )
    if model.get("owner"):
        yield "last change", f"{model['last_change']} by {model['owner']}: {model['reason']}"


def _route(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    weights = ", ".join(f"v{version} {percent} %" for version, percent in model["weights"].items())
    yield "champion", _version(model["champion"])
    yield "previous", _version(model["previous"])
    if model["candidate"] is not None:
        watched = f"watched until {model['watched_until']:%H:%M:%S} UTC" if model["watched_until"] else "nobody watches"
        yield "candidate", f"v{model['candidate']} ({watched})"
    yield "weights", weights or "no traffic"
    if model["changed_by_hand"]:
        yield "CHANGED BY HAND", "automation waits for `seatrial adopt` or `seatrial rollback`"


def _outcome(facts: Mapping[str, Any]) -> tuple[str, str, str, str]:
    reasons = facts.get("reasons") or ()
    version = "" if facts.get("version") is None else f"v{facts['version']}"
    ended = str(facts.get("at") or "")[:16].replace("T", " ")
    return str(facts.get("outcome", "?")), version, ended, str(reasons[0]) if reasons else ""


def _table(*columns: str, rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=column not in {"why", "note"})
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _version(version: int | None) -> str:
    return "nobody" if version is None else f"v{version}"
