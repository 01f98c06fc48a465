"""What a drill showed."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from seatrial.app.commands._drilling import Drilled


def table(drill: Drilled) -> Table:
    """The load's own counts."""
    seen = drill.seen
    answered = ", ".join(f"{who} {count}" for who, count in seen.answered_by.items())
    back = "-" if seen.back_in_s is None else f"{seen.back_in_s:.2f} s"
    rows = {
        "requests": f"{seen.requests} in {seen.seconds:.0f} s",
        "answered right": answered or "none",
        "failed": f"{seen.failed}, all in the candidate's share" if not drill.champion_errors else str(seen.failed),
        "lost": str(seen.lost),
        "wrong": str(seen.wrong),
        "first bad answer → champion only": back,
        "then": f"v{drill.champion} answered all of {seen.after}",
        "log": str(drill.log),
    }
    shown = Table(box=None, show_header=False, padding=(0, 2))
    for name, value in rows.items():
        shown.add_row(Text(name, style="dim"), Text(value))
    return shown
