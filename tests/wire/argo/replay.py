"""A case run by the local runner, each container a real process: its image stands for `sh -c` on this machine."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from seatrial.app import runner

from . import facts
from .case import Case, Submission

COMMANDS: Final = {"localhost/busybox:1": ("/bin/sh", "-c")}
WAIT_S: Final = 2
SHORT_WAIT: Final = re.compile(r"\bsleep [3-9]\b")
LIMIT_S: Final = 60.0
"""Seconds that a workflow waits for a node of another."""


class Stage:
    """What the runs of one case see of each other."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        names = {s.annotation("submit-once-running") for s in case.submissions} - {""}
        self.events = {name: threading.Event() for name in names}
        self.waited: dict[str, dict[str, str]] = {s.name: {} for s in case.submissions}
        self.told: set[str] = set()

    def run(self, submission: Submission) -> dict[str, Any]:
        """Run one Workflow to its end; one that is shut down must be run in the main thread."""
        once = submission.annotation("submit-once-running")
        if once and not self.events[once].wait(LIMIT_S):
            raise TimeoutError(f"{once} never ran")
        document = _hurried(self.case.templates[submission.template])
        libraries = {name: made for name, made in self.case.templates.items() if name != submission.template}
        return runner.run(
            document,
            parameters=submission.parameters,
            environment={},
            runs=self.folder / "runs",
            locks=self.folder / "locks",
            observe=lambda workflow: self._observe(submission, workflow),
            entrypoint=submission.entrypoint,
            commands=COMMANDS,
            libraries=libraries,
        )

    def _observe(self, submission: Submission, workflow: Mapping[str, Any]) -> None:
        self.waited[submission.name] |= facts.waits(workflow)
        for name, event in self.events.items():
            if facts.runs(workflow, submission.name, name):
                event.set()
        if submission.name not in self.told and facts.is_due(submission, workflow):
            self.told.add(submission.name)
            for _ in range({"Stop": 1, "Terminate": 2}[submission.annotation("shutdown")]):
                signal.raise_signal(signal.SIGINT)


def _hurried(document: dict[str, Any]) -> dict[str, Any]:
    """The template with deadlines and short waits of WAIT_S: a pod needs seconds to start, a process here does not."""
    hurried: dict[str, Any] = json.loads(SHORT_WAIT.sub(f"sleep {WAIT_S}", json.dumps(document)))
    for holder in [hurried["spec"], *hurried["spec"]["templates"]]:
        if "activeDeadlineSeconds" in holder:
            holder["activeDeadlineSeconds"] = WAIT_S
    return hurried


def replay(case: Case, folder: Path) -> facts.Facts:
    """The facts of a case, run here.

    Args:
        case: What to run.
        folder: For its runs and locks.

    Raises:
        InvalidInput: The runner refuses it.
    """
    stage = Stage(case, folder)
    here = next((s for s in case.submissions if s.annotation("shutdown")), case.submissions[0])
    others = [s for s in case.submissions if s is not here]
    with ThreadPoolExecutor(max_workers=max(1, len(others))) as pool:
        futures: dict[str, Future[dict[str, Any]]] = {s.name: pool.submit(stage.run, s) for s in others}
        finished = {here.name: stage.run(here)}
        finished |= {name: future.result() for name, future in futures.items()}
    return facts.of_case({s.name: finished[s.name] for s in case.submissions}, stage.waited)
