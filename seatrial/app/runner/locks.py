"""Mutexes between processes: one file per lock, held by `flock`, so that a dead owner holds nothing."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from seatrial.errors import Unavailable


@dataclass
class Locks:
    """The locks of one run.

    Args:
        folder: Where the lock files lie; the same for all runs that exclude each other.
        run: Who holds them, for people.
    """

    folder: Path
    run: str

    def __post_init__(self) -> None:
        self._held: dict[str, int] = {}

    def acquire(self, lock: str) -> bool:
        """Whether the lock is held now; it never waits."""
        if lock in self._held:
            return True
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path(lock), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Unavailable(f"the lock {lock} cannot be asked for: {error}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps({"pid": os.getpid(), "run": self.run}).encode())
        self._held[lock] = descriptor
        return True

    def release(self, lock: str) -> None:
        """Let the lock go; nothing happens when it is not held."""
        descriptor = self._held.pop(lock, None)
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def release_all(self) -> None:
        """Let every lock go."""
        for lock in list(self._held):
            self.release(lock)

    def _path(self, lock: str) -> Path:
        return self.folder / f"{quote(lock, safe='')}.lock"
