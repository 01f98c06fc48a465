"""What the runner itself costs: a chain of steps that do nothing, through the runner and bare."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.app import runner

STEPS = 8
RUNS = 7
NOTHING = (sys.executable, "-c", "pass")


@dataclass(frozen=True)
class Chain:
    """Medians over the runs, seconds for the whole chain."""

    runner_s: float
    bare_s: float

    @property
    def more_ms(self) -> float:
        """Milliseconds per step that the runner takes more."""
        return 1000 * (self.runner_s - self.bare_s) / STEPS


def measure() -> Chain:
    """Runner and bare in turn, so that both meet the same machine."""
    through, bare = [], []
    for _ in range(RUNS):
        bare.append(_timed_bare())
        through.append(_timed_runner())
    return Chain(statistics.median(through), statistics.median(bare))


def _timed_bare() -> float:
    start = time.perf_counter()
    for _ in range(STEPS):
        subprocess.run(NOTHING, check=True)
    return time.perf_counter() - start


def _timed_runner() -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = runner.run(
            _template(),
            parameters={},
            environment={},
            runs=Path(folder, "runs"),
            locks=Path(folder, "locks"),
            commands={"seatrial/nothing": NOTHING},
        )
        seconds = time.perf_counter() - start
    assert done["status"]["phase"] == "Succeeded", done["status"]
    assert done["status"]["progress"] == f"{STEPS}/{STEPS}"
    return seconds


def _template() -> dict[str, Any]:
    tasks = [
        {"name": f"step-{i}", "template": "nothing", **({"depends": f"step-{i - 1}.Succeeded"} if i else {})}
        for i in range(STEPS)
    ]
    nothing = {"name": "nothing", "container": {"image": "seatrial/nothing", "command": ["python3"]}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTemplate",
        "metadata": {"name": "chain"},
        "spec": {"entrypoint": "chain", "templates": [{"name": "chain", "dag": {"tasks": tasks}}, nothing]},
    }
