"""A step's last event in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from seatrial.errors import shortened

TAIL_BYTES: Final = 8192
"""As much of a log's end is read; an event has at most 4096 characters."""
WORDS_MAX: Final = 110

_SAYS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "start": lambda _: "started",
    "exported": lambda f: f"source {str(f.get('revision', ''))[:16]}",
    "reserved": lambda f: f"version {f.get('version')}, look {f.get('looks_at_holdout')} at this holdout",
    "judged": lambda f: f"{f.get('decision')} {'; '.join(map(str, f.get('reasons') or ()))}",
    "kept": lambda f: f"kept bundle {str(f.get('bundle', ''))[:19]}",
    "route_changed": lambda f: f"route: {_weights(f.get('weights'))}",
    "read_back": lambda f: f"answers: {_weights(f.get('answers'))}",
    "failed": lambda f: str(f.get("error", "")),
    "note": lambda f: str(f.get("text", "")),
}


def last_event(log: Path) -> str:
    """What the step's log says last, in words; its last line when it never told an event; empty without any."""
    event = _last(log)
    return shortened(next(iter(_tail(log)), "")) if event is None else words(event)


def error_in(log: Path) -> str:
    """The error that ended the step; the log's last line when it does not tell; empty without any."""
    event = _last(log)
    if event is not None and event.get("event") == "failed":
        return str(event.get("error", ""))
    return "" if event is not None else shortened(next(iter(_tail(log)), ""))


def words(event: Mapping[str, Any]) -> str:
    """An event as a person would say it, on one line."""
    name = str(event.get("event", ""))
    if "words" in event:
        text = str(event["words"])
    elif name in _SAYS:
        text = _SAYS[name](event)
    elif name == "done":
        text = _outputs(event.get("outputs"))
    else:
        text = f"{name.replace('_', ' ')} {_outputs({k: v for k, v in event.items() if k != 'event'})}"
    line = " ".join(text.split())
    return line if len(line) <= WORDS_MAX else line[: WORDS_MAX - 1] + "…"


def _outputs(values: object) -> str:
    """Short values, `name value`, without those that say nothing."""
    if not isinstance(values, Mapping):
        return ""
    said = [
        f"{str(name).replace('_', ' ')} {_short(value)}"
        for name, value in values.items()
        if isinstance(value, str | int | float) and value not in ("", 0, "none") and not str(value).startswith("{")
    ]
    return ", ".join(said)


def _short(value: object) -> str:
    text = str(value)
    return text[:19] if text.startswith("sha256:") else text


def _weights(values: object) -> str:
    if not isinstance(values, Mapping):
        return ""
    return ", ".join(
        f"{name if str(name)[:1] not in '123456789' else f'v{name}'} {value}" for name, value in values.items()
    )


def _last(log: Path) -> Mapping[str, Any] | None:
    """The last line that is a JSON event."""
    for line in _tail(log):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            return event
    return None


def _tail(log: Path) -> list[str]:
    """The log's last lines, the last one first."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line for line in reversed(text.splitlines()) if line.strip()]
