"""Following a run: a live tree on a terminal, a line for each start and end elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from seatrial.app.views.steps import SYMBOLS, Line, lines
from seatrial.app.views.words import last_event

Observe = Callable[[dict[str, Any]], None]

STYLES: Final[Mapping[str, str]] = {
    "Running": "bold cyan",
    "Pending": "yellow",
    "Succeeded": "green",
    "Failed": "bold red",
    "Error": "bold red",
}


@contextlib.contextmanager
def following(template: Mapping[str, Any], runs: Path, console: Console, *, title: str) -> Iterator[Observe]:
    """Gives what the runner is to call at each change; what is shown on a terminal stays there in the end."""
    if not console.is_terminal:
        yield Plain(template, runs, console)
        return
    tree = Tree(template, runs, title)
    with Live(tree, console=console, refresh_per_second=4, transient=False):
        yield tree.observe


class Tree:
    """All steps at once, drawn anew several times a second."""

    def __init__(self, template: Mapping[str, Any], runs: Path, title: str) -> None:
        self._template = template
        self._runs = runs
        self._title = title
        self._workflow: dict[str, Any] = {}

    def observe(self, workflow: dict[str, Any]) -> None:
        """Take the newest state."""
        self._workflow = workflow

    def __rich__(self) -> Table:
        """The tree as it is now."""
        table = Table(
            box=None, padding=(0, 1), show_header=False, expand=True, title=self._title, title_justify="left"
        )  # the words give way, never the names
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(overflow="ellipsis", no_wrap=True, style="dim", ratio=1)
        for line in lines(self._template, self._workflow):
            style = STYLES.get(line.phase, "dim")
            name = Text(f"{'  ' * line.depth}{SYMBOLS.get(line.phase, '?')} {line.name}", style=style)
            seconds = line.seconds()
            table.add_row(name, "" if seconds is None else f"{seconds:.1f} s", said(line, self._workflow, self._runs))
        return table


class Plain:
    """One line when a step starts, one when it ends."""

    def __init__(self, template: Mapping[str, Any], runs: Path, console: Console) -> None:
        self._template = template
        self._runs = runs
        self._console = console
        self._told: dict[str, str] = {}

    def __call__(self, workflow: dict[str, Any]) -> None:
        """Tell what is new."""
        for line in lines(self._template, workflow):
            waits = line.phase == "Pending" and bool(line.message)
            if (line.group and not waits) or self._told.get(line.name, "") == line.phase:
                continue
            self._told[line.name] = line.phase
            if waits or line.ran:
                self._tell(line, said(line, workflow, self._runs))

    def _tell(self, line: Line, words: str) -> None:
        seconds = line.seconds() if line.over else None
        time = "" if seconds is None else f"{seconds:.1f} s"
        verb = line.phase.lower() if line.over else {"Pending": "waits"}.get(line.phase, "starts")
        text = (
            f"{SYMBOLS.get(line.phase, '?')} {line.name:<16} {verb:<10} {time:>7}  {words if verb != 'starts' else ''}"
        )
        self._console.print(text.rstrip(), markup=False, highlight=False, soft_wrap=True)


def said(line: Line, workflow: Mapping[str, Any], runs: Path) -> str:
    """The step's last event in words, or what it waits for."""
    if line.phase == "Pending" and line.message.startswith("Waiting for"):
        return "waits: another release of this model is rolling out"
    if line.group or not line.node_id or not line.ran:
        return ""
    run = str(workflow.get("metadata", {}).get("name", ""))
    return last_event(runs / run / line.node_id / "main.log") or line.message
