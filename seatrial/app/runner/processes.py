"""Child processes: each in a group of its own, with a clean environment, ended as a whole."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from seatrial.errors import StepError, shortened

GRACE_S: Final = 10.0
"""Seconds between SIGTERM and SIGKILL."""

QUIET: Final = {
    "PYTHONUNBUFFERED": "1",
    "DO_NOT_TRACK": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""Logs at once, and no library tells its maker what we do."""

_PR_SET_PDEATHSIG: Final = 1
_PRCTL: Final = ctypes.CDLL(None).prctl


def environment(tmp: Path, *sources: Mapping[str, str]) -> dict[str, str]:
    """A process's whole environment: nothing of this process's own but PATH.

    Args:
        tmp: Its home and its temporary folder.
        sources: Name → value, later ones win.
    """
    merged = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(tmp),
        "TMPDIR": str(tmp),
        **QUIET,
    }
    for source in sources:
        merged.update(source)
    return merged


class Process:
    """A running child."""

    def __init__(self, command: Sequence[str], *, variables: Mapping[str, str], folder: Path, log: Path) -> None:
        """Start it.

        Args:
            command: Program and arguments; no shell.
            variables: Its whole environment.
            folder: Where it runs.
            log: Where its output goes, both streams.

        Raises:
            StepError: It cannot be started.
        """
        self.kill_at: float | None = None
        try:
            with log.open("ab") as output:
                self._child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=dict(variables),
                    start_new_session=True,
                    preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, no Python lock is touched
                )
        except (OSError, ValueError) as error:
            raise StepError(f"{command[0]} cannot be started: {shortened(error)}") from error
        self.descriptor = os.pidfd_open(self._child.pid)

    @property
    def pid(self) -> int:
        """Its process id, which is its group's too."""
        return self._child.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; one that is gone is fine."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    def reap(self) -> int:
        """End what is left of the group and give back the exit code, 128 + n for signal n; waits for the process."""
        # Still a zombie, so the group's number is not anybody else's yet.
        os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
        self.signal(signal.SIGKILL)
        code = self._child.wait()
        os.close(self.descriptor)
        return code if code >= 0 else 128 - code


def _die_with_parent() -> None:
    """A runner that is killed leaves no step behind. Source: prctl(2)."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM)
