"""The few folders of the host that a cluster mounts on: made by the first cluster, removed by the last.

To remove a folder is to unmount what any other cluster has mounted on it, so it waits until none runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

RECORD: Final = Path("/var/lib/seatrial-folders")
"""Names, one on a line, what was made; gone with the last cluster."""


def make(folders: Iterable[str], record: Path = RECORD) -> None:
    """Every folder exists; those that did not are recorded first."""
    with _alone(record):
        missing = [folder for folder in folders if not Path(folder).exists()]
        if missing:
            record.write_text("".join(f"{folder}\n" for folder in sorted({*_recorded(record), *missing})))
        for folder in missing:
            Path(folder).mkdir(parents=True)


def remove(*, others_run: bool, record: Path = RECORD) -> None:
    """Remove what was made, unless another cluster runs; what somebody else uses by now stays."""
    with _alone(record):
        if others_run:
            return
        for folder in _recorded(record):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        record.unlink(missing_ok=True)


def _recorded(record: Path) -> list[str]:
    return record.read_text().splitlines() if record.exists() else []


@contextlib.contextmanager
def _alone(record: Path) -> Iterator[None]:
    """One process of this host at a time; the folder of the record is the lock, so none is left."""
    lock = os.open(record.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
