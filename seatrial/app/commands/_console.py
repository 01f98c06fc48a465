"""Where commands write: facts to stdout, progress to stderr when stdout is to hold JSON only."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

from rich.console import Console

from seatrial.app.views import outcome

WIDTH: Final = 140
"""Columns of tables that do not go to a terminal."""


def console(*, as_json: bool = False) -> Console:
    """Stdout; nothing at all when stdout is kept for JSON."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
    return Console(quiet=as_json, highlight=False, soft_wrap=True, width=width)


def print_json(facts: dict[str, Any]) -> None:
    """One JSON object, and nothing else, on stdout."""
    sys.stdout.write(json.dumps(facts, indent=2, ensure_ascii=False, default=str) + "\n")


def say_to(target: Console) -> Any:  # noqa: ANN401 - a function that takes a text
    """What tells of progress on that console."""
    return lambda text: target.print(f"· {text}", markup=False, style="dim")


def tell_end(ended: outcome.Ended, target: Console, *, as_json: bool) -> int:
    """How a release ended, for people or as JSON; the exit code."""
    if as_json:
        print_json(ended.facts())
        return ended.exit_code
    say = say_to(target)
    for note in ended.notes:
        say(note)
    for report in ended.reports if ended.outcome != "promoted" else ():
        say(f"report {report}")
    target.print(outcome.line(ended), markup=False)
    return ended.exit_code
