"""Ending the sandbox's processes: the supervised ones by their supervisor, what an earlier life left by its mark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

import psutil

from seatrial.app.sandbox.places import Home
from seatrial.app.sandbox.supervisor import IDENTITY_VARIABLE, Supervisor
from seatrial.errors import StepError

STOPPED_WITHIN_S: Final = 12.0
_POLL_S: Final = 0.1


def stop(supervisor: Supervisor) -> None:
    """Ask every program to stop, then supervisord itself; what does not end in time is left for `sweep`."""
    pid = supervisor.pid()
    supervisor.stop_all()
    deadline = time.monotonic() + STOPPED_WITHIN_S
    while time.monotonic() < deadline and not all(process.over for process in supervisor.processes().values()):
        time.sleep(_POLL_S)
    supervisor.shutdown()
    while time.monotonic() < deadline and _lives(pid):
        time.sleep(_POLL_S)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def sweep(place: Home, say: Callable[[str], None]) -> bool:
    """End what an earlier life of this sandbox left; whether there was any.

    Raises:
        StepError: A process cannot be ended.
    """
    left = [process for process in psutil.process_iter() if belongs(process, str(place.root))]
    if not left:
        return False
    say(f"ending {len(left)} processes that were left over")
    for process in left:
        _quietly(process.terminate)
    _, alive = psutil.wait_procs(left, timeout=3)
    for process in alive:
        _quietly(process.kill)
    _, alive = psutil.wait_procs(alive, timeout=3)
    if alive:
        raise StepError(f"these processes of the sandbox cannot be ended: {[process.pid for process in alive]}")
    return True


def belongs(process: psutil.Process, identity: str) -> bool:
    """Whether it was started by the sandbox of that identity; never this process itself."""
    try:
        return process.pid != os.getpid() and process.environ().get(IDENTITY_VARIABLE) == identity
    except (psutil.Error, OSError):
        return False


def _quietly(act: Callable[[], None]) -> None:
    try:
        act()
    except psutil.NoSuchProcess:
        return
