"""Every process that the owner's code started ends with it, also one that left its process group.

Orphans of the child become children of this process (a "child subreaper"), which kills them until none is left.
Source: prctl(2), PR_SET_CHILD_SUBREAPER; Linux 3.4.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36
ROUNDS: Final = 200
"""Looks at what is left, 10 ms apart: a kill takes a moment, and the killed one's own children come to us."""


@contextlib.contextmanager
def ended_at_exit() -> Iterator[None]:
    """What is started within, and whatever that starts, has ended after; children from before are left alone."""
    before = _children()
    _adopt(orphans=True)
    try:
        yield
    finally:
        for _ in range(ROUNDS):
            left = _children() - before
            if not left:
                break
            for pid in left:
                _end(pid)
            time.sleep(0.01)
        _adopt(orphans=False)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with its process group, and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _adopt(*, orphans: bool) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0)


def _children() -> set[int]:
    """Processes whose parent this one is, also those that wait to be reaped. Source: proc(5), /proc/pid/stat."""
    return {int(folder.name) for folder in Path("/proc").glob("[0-9]*") if _parent(folder) == os.getpid()}


def _parent(folder: Path) -> int | None:
    try:
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])
