"""Which releases run in a sandbox: each says so in a file that it holds locked, so that a dead one says nothing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seatrial.app.sandbox.places import Home, home_of, read_json, write
from seatrial.errors import InvalidInput

TAKEN_DOWN: Final = "the sandbox was taken down"
ENDS_WITHIN_S: Final = 45.0
"""A step gets 10 s to end, then settle_release puts traffic back and reads the answers."""
_POLL_S: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Running:
    """A release that runs now."""

    what: str
    """Like `release cart_abandonment`."""
    pid: int
    seconds: float
    file: Path

    def __str__(self) -> str:
        return f"{self.what} (process {self.pid}, for {self.seconds:.0f} s)"


@contextlib.contextmanager
def releasing(home: Path, what: str) -> Iterator[Callable[[], str]]:
    """Be known to `down` while inside; what comes back gives the word that `down --force` left, empty: none.

    A release that was given a word stays known until its process ends: `down` waits for all of it.
    """
    folder = home_of(home).releases
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
    partial = file.with_name(f".{file.name}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, json.dumps({"what": what, "pid": os.getpid(), "since": time.time()}).encode())
    partial.rename(file)
    try:
        yield lambda: _word(file)
    finally:
        if not _word(file):
            file.unlink(missing_ok=True)
            os.close(descriptor)


def running(place: Home) -> list[Running]:
    """The releases that run now; the files of dead ones are removed."""
    found = []
    for file in sorted(place.releases.glob("[0-9]*.json")):
        if not _held(file):
            _forget(file)
            continue
        said = read_json(file)
        since = float(str(said.get("since", time.time())))
        found.append(
            Running(
                what=str(said.get("what", "a release")),
                pid=int(str(said.get("pid", 0))),
                seconds=max(0.0, time.time() - since),
                file=file,
            )
        )
    return found


def refuse_while_one_runs(place: Home) -> None:
    """Nothing, when no release runs.

    Raises:
        InvalidInput: One does; it is named.
    """
    if alive := running(place):
        verb = "runs" if len(alive) == 1 else "run"
        raise InvalidInput(
            f"{' and '.join(map(str, alive))} {verb} in this sandbox: let it end, stop it with Ctrl-C, or say "
            "`seatrial down --force`, which stops it and lets it put traffic back first"
        )


def stop_all(place: Home, say: Callable[[str], None]) -> None:
    """Stop every release that runs, as Ctrl-C would, with the word that the sandbox was taken down; wait for the end.

    One that does not end in time is left behind, and said so: it finds the sandbox gone.
    """
    alive = running(place)
    for one in alive:
        say(f"stopping {one}")
        write(_word_file(one.file), TAKEN_DOWN.encode())
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGTERM)
    deadline = time.monotonic() + ENDS_WITHIN_S
    while alive and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        alive = running(place)
    for one in alive:
        say(f"{one} does not end within {ENDS_WITHIN_S:.0f} s: the sandbox goes without it")


def _held(file: Path) -> bool:
    """Whether a living process holds it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _forget(file: Path) -> None:
    file.unlink(missing_ok=True)
    _word_file(file).unlink(missing_ok=True)


def _word_file(file: Path) -> Path:
    return file.with_suffix(".word")


def _word(file: Path) -> str:
    try:
        return _word_file(file).read_text(encoding="utf-8")
    except OSError:
        return ""
