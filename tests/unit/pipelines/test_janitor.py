"""The janitor's workflow, run by the runner: the same YAML as in the cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seatrial.app import runner
from seatrial.app.runner.commands import commands

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("seatrial-store", "seatrial-store-credentials", "seatrial-cluster", "seatrial-gateway")
STAND_IN = """
import os, pathlib, sys
out = pathlib.Path(os.environ["SEATRIAL_IO"]) / "out" / "params"
out.mkdir(parents=True)
(out / "settled").write_text("2")
(out / "left").write_text(" ".join(sys.argv[1:]))
"""


def test_the_runner_runs_the_janitor_with_the_word_that_means_it(tmp_path: Path) -> None:
    cron = yaml.safe_load((ROOT / "workflow_templates" / "settle.yaml").read_text())
    template = {**cron, "kind": "WorkflowTemplate", "spec": cron["spec"]["workflowSpec"]}
    finished = runner.run(
        template,
        parameters={},
        environment={name: {} for name in SOURCES},
        runs=tmp_path / "runs",
        locks=tmp_path / "locks",
        commands={"seatrial/settle-release": [sys.executable, "-c", STAND_IN]},
    )
    assert finished["status"]["phase"] == "Succeeded"
    (node,) = (node for node in finished["status"]["nodes"].values() if node["type"] == "Pod")
    given = {p["name"]: p["value"] for p in node["outputs"]["parameters"]}
    assert given == {"settled": "2", "left": "settle"}


@pytest.mark.parametrize("words", [["settle", "--surprise", "x"], ["settle"]])
def test_the_image_that_settles_one_release_knows_the_word(words: list[str], tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SEATRIAL_IO": str(tmp_path)}
    program = [*commands()["seatrial/settle-release"], *words]
    done = subprocess.run(program, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 78
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["step"] == "settle"
    assert ("takes []" if len(words) > 1 else "SEATRIAL_NAMESPACE") in last["error"]
