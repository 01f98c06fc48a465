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

from seatrial.app.views.steps import SYMBOLS, WAITS_FOR_LOCK, Line, lines
from seatrial.app.views.words import last_event, words
from steps.settle_release import history

Observe = Callable[[dict[str, Any]], None]
Said = Callable[[Line, Mapping[str, Any]], str]
"""What a step says, in words, by its line and the run."""

STYLES: Final[Mapping[str, str]] = {
    "Running": "bold cyan",
    "Pending": "yellow",
    "Succeeded": "green",
    "Failed": "bold red",
    "Error": "bold red",
}


@contextlib.contextmanager
def following(template: Mapping[str, Any], said: Said, console: Console, *, title: str) -> Iterator[Observe]:
    """Gives what the runner is to call at each change; what is shown on a terminal stays there in the end."""
    if not console.is_terminal:
        yield Plain(template, said, console)
        return
    tree = Tree(template, said, title)
    with Live(tree, console=console, refresh_per_second=4, transient=False):
        yield tree.observe


class Tree:
    """All steps at once, drawn anew several times a second."""

    def __init__(self, template: Mapping[str, Any], said: Said, title: str) -> None:
        self._template = template
        self._said = said
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
            table.add_row(name, "" if seconds is None else f"{seconds:.1f} s", self._said(line, self._workflow))
        return table


class Plain:
    """One line when a step starts, one when it ends."""

    def __init__(self, template: Mapping[str, Any], said: Said, console: Console) -> None:
        self._template = template
        self._said = said
        self._console = console
        self._told: dict[str, str] = {}

    def __call__(self, workflow: dict[str, Any]) -> None:
        """Tell what is new."""
        for line in lines(self._template, workflow):
            state = "waits" if line.waits else line.phase
            if (line.group and not line.waits) or self._told.get(line.name, "") == state:
                continue
            self._told[line.name] = state
            if line.waits or line.ran:
                self._tell(line, self._said(line, workflow))

    def _tell(self, line: Line, words: str) -> None:
        seconds = line.seconds() if line.over else None
        time = "" if seconds is None else f"{seconds:.1f} s"
        verb = line.phase.lower() if line.over else "waits" if line.waits else "starts"
        text = (
            f"{SYMBOLS.get(line.phase, '?')} {line.name:<16} {verb:<10} {time:>7}  {words if verb != 'starts' else ''}"
        )
        self._console.print(text.rstrip(), markup=False, highlight=False, soft_wrap=True)


def from_logs(runs: Path) -> Said:
    """A step's last event: its log lies in `runs`."""

    def said(line: Line, workflow: Mapping[str, Any]) -> str:
        run = str(workflow.get("metadata", {}).get("name", ""))
        return last_event(runs / run / line.node_id / "main.log") or line.message

    return _when_it_ran(said)


def from_outputs() -> Said:
    """What a step gave, or why it failed: its log is elsewhere."""

    def said(line: Line, _: Mapping[str, Any]) -> str:
        given = words({"event": "done", "outputs": line.outputs}) if line.over else ""
        why = history.plain(line.message)
        if line.phase in {"Failed", "Error"} and why != line.message:
            return why
        return given or line.message  # a code alone says less than what was given

    return _when_it_ran(said)


def _when_it_ran(said: Said) -> Said:
    """What it waits for, before it runs."""

    def all_the_time(line: Line, workflow: Mapping[str, Any]) -> str:
        if line.waits and line.message.startswith(WAITS_FOR_LOCK):
            return "waits: another release of this model is rolling out"
        if line.waits:
            return line.message
        if line.group or not line.node_id or not line.ran:
            return ""
        return said(line, workflow)

    return all_the_time
