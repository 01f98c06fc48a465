"""Keeps one replica: what the kubelet does for one container, on this machine.

    python -P pod_keeper.py <folder>

reads <folder>/pod.json (see `control.pods`), keeps its command running, probes it, holds it under its memory limit, and
writes <folder>/status.json whenever something changed. Run as a file, with nothing of seatrial imported, because there
is one for each replica. Times are shorter than the kubelet's: restarts wait 0, 1, 2, 4 … 30 s instead of 10 … 300 s,
probes ask every 0.1 s until the first success; how many failures end a container is as the pod says.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import psutil

TICK_S: Final = 0.1
MEMORY_PERIOD_S: Final = 0.3
BACKOFF_MAX_S: Final = 30.0
GOOD_RUN_S: Final = 60.0
"""A container that ran this long starts its next back-off anew."""

IDENTITY_VARIABLE: Final = "SEATRIAL_SANDBOX"
POD_VARIABLE: Final = "SEATRIAL_POD"
"""In the environment of everything that a container starts, so that what outlives it is found."""

_SET_CHILD_SUBREAPER: Final = 36
"""Source: linux/prctl.h."""

KILLED: Final = 137
"""128 + SIGKILL: what a container's exit is called when it was killed."""


class Probe:
    """One of a container's probes: when to ask, and how often in a row it failed."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path, self.port = str(spec["path"]), int(spec["port"])
        self.period_s, self.timeout_s = float(spec["period_s"]), float(spec["timeout_s"])
        self.failures_max = int(spec["failures"])
        self.reset()

    def reset(self) -> None:
        """Forget what was asked of the container before."""
        self.failures = 0
        self.asked_at = 0.0
        self.passed = False

    def due(self, now: float) -> bool:
        """Whether it is time to ask."""
        return now - self.asked_at >= (min(self.period_s, 1.0) if self.passed else TICK_S)

    def ask(self, now: float) -> bool:
        """Ask once; whether the answer was good."""
        self.asked_at = now
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout_s)
        try:
            connection.request("GET", self.path)
            good = 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            good = False
        finally:
            connection.close()
        self.failures = 0 if good else self.failures + 1
        self.passed = self.passed or good
        return good


class Keeper:
    """The container of one pod, from its first start until the keeper is told to stop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        pod = json.loads((folder / "pod.json").read_text())
        self.command: list[str] = pod["command"]
        marks = {POD_VARIABLE: str(folder), IDENTITY_VARIABLE: os.environ.get(IDENTITY_VARIABLE, "")}
        self.environment: dict[str, str] = {**pod["environment"], **marks}
        self.grace_s = float(pod["grace_s"])
        self.memory_bytes: int | None = pod["memory_bytes"]
        self.startup, self.readiness, self.liveness = (
            Probe(pod["probes"][kind]) for kind in ("startup", "readiness", "liveness")
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = self.memory_at = 0.0
        self.start_after = 0.0
        self.restarts = self.failures_in_row = 0
        self.ready = False
        self.kill_reason = ""
        self.last: dict[str, Any] = {}
        self.stopping = False
        self.written = ""

    def run(self) -> None:
        """Keep the container until SIGTERM."""
        # Orphans of the container come to us, not to init: Triton's stubs can outlive a killed Triton for ever.
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._end_earlier()
        signal.signal(signal.SIGTERM, lambda *_: self._ask_to_stop())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while not self.stopping:
            self._tick(time.monotonic())
            self._write_status()
            time.sleep(TICK_S)
        self._stop()
        self._write_status()

    def _ask_to_stop(self) -> None:
        self.stopping = True

    def _tick(self, now: float) -> None:
        if self.process is None:
            if now >= self.start_after:
                self._start(now)
            return
        code = self.process.poll()
        if code is not None:
            self._note_exit(code, now)
            return
        self._watch_memory(now)
        self._probe(now)

    def _start(self, now: float) -> None:
        setpriv = shutil.which("setpriv")
        leash = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        self.process = subprocess.Popen([*leash, *self.command], env=self.environment, cwd=self.folder)
        self.started_at = now
        for probe in (self.startup, self.readiness, self.liveness):
            probe.reset()

    def _note_exit(self, code: int, now: float) -> None:
        exit_code = KILLED if code == -signal.SIGKILL else (128 - code if code < 0 else code)
        reason = self.kill_reason or ("Completed" if exit_code == 0 else "Error")
        self.last = {"exit_code": exit_code, "reason": reason, "at": time.time()}
        self._end_stragglers()
        self.process, self.ready, self.kill_reason = None, False, ""
        self.restarts += 1
        self.failures_in_row = 1 if now - self.started_at >= GOOD_RUN_S else self.failures_in_row + 1
        wait_s = 0.0 if self.failures_in_row == 1 else min(2.0 ** (self.failures_in_row - 2), BACKOFF_MAX_S)
        self.start_after = now + wait_s

    def _end_stragglers(self) -> None:
        """What the container left behind ends with it, as a container's other processes do."""
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
                child.kill()
                os.waitpid(child.pid, 0)

    def _end_earlier(self) -> None:
        """What an earlier keeper of this pod left, if it was killed."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(POD_VARIABLE) == str(self.folder):
                    process.kill()

    def _watch_memory(self, now: float) -> None:
        if self.memory_bytes is None or self.process is None or now - self.memory_at < MEMORY_PERIOD_S:
            return
        self.memory_at = now
        used = 0
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.process.pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    used += process.memory_info().rss
        if used > self.memory_bytes:
            print(f"memory {used} is over the limit {self.memory_bytes}: killed", flush=True)  # noqa: T201 - the pod's log
            self._kill("OOMKilled")

    def _probe(self, now: float) -> None:
        if not self.startup.passed:
            if self.startup.due(now):
                self.startup.ask(now)
            if now - self.started_at > self.startup.period_s * self.startup.failures_max and not self.startup.passed:
                self._kill("Error")
            return
        if self.readiness.due(now):
            if self.readiness.ask(now):
                self.ready = True
            elif self.readiness.failures >= self.readiness.failures_max:
                self.ready = False
        if self.liveness.due(now):
            self.liveness.ask(now)
            if self.liveness.failures >= self.liveness.failures_max:
                self._kill("Error")

    def _kill(self, reason: str) -> None:
        self.kill_reason = reason
        if self.process is not None:
            self.process.kill()

    def _stop(self) -> None:
        self.ready = False
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(self.grace_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._end_stragglers()

    def _write_status(self) -> None:
        running = self.process is not None
        status = {
            "keeper": os.getpid(),
            "container": self.process.pid if self.process is not None else 0,
            "state": "running" if running else "waiting",
            "reason": "" if running else ("CrashLoopBackOff" if self.failures_in_row > 1 else "ContainerCreating"),
            "ready": self.ready,
            "restarts": self.restarts,
            "last": self.last,
        }
        text = json.dumps(status)
        if text != self.written:
            temporary = self.folder / ".status.json"
            temporary.write_text(text)
            temporary.rename(self.folder / "status.json")
            self.written = text


if __name__ == "__main__":
    Keeper(Path(sys.argv[1])).run()
