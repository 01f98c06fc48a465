"""A Triton that a step booted does not outlive the step, however the step ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from seatrial.adapters.triton import TRITON

SERVER = """#!/bin/sh
echo $$ > {pid}
exec sleep 60
"""
STEP = """
import sys
from pathlib import Path
from pydantic import Field
from seatrial.adapters.triton import boot
from steps import _runtime
from steps._contract import Contract, Step

class Inputs(Contract):
    reason: str = Field(description="free text")

class Outputs(Contract):
    total: int = Field(default=0, description="the sum")

def run(inputs, scratch):
    with boot(scratch, model_name="m", version=1, log=scratch / "log", within_s=60):
        return Outputs()

_runtime.main("add_up", Step(summary="Add.", deadline_s=10), Inputs, run, ["--reason", "x"])
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_triton_ends_with_the_step_that_booted_it(tmp_path: Path, number: signal.Signals, code: int) -> None:
    server, pid = tmp_path / "tritonserver", tmp_path / "pid"
    server.write_text(SERVER.format(pid=pid))
    server.chmod(0o755)
    environment = {**os.environ, TRITON: str(server), "SEATRIAL_IO": str(tmp_path / "io")}
    with subprocess.Popen([sys.executable, "-c", STEP], env=environment, stdout=subprocess.DEVNULL) as step:
        booted = _number_in(pid)
        step.send_signal(number)
        assert step.wait(timeout=10) == code
    assert _ends(booted)


def _number_in(path: Path) -> int:
    deadline = time.monotonic() + 20
    while not (path.is_file() and path.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(path.read_text())


def _ends(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
