"""A release is stopped: by Ctrl-C once or twice, or by `seatrial down --force`. What it left is put right, and said."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fakes_release as made
import polars as pl
import psutil
import pytest
import yaml

from seatrial.app.sandbox.ending import belongs

ROOT = Path(__file__).resolve().parents[2]
MODEL = "cart_abandonment"
"""A name that the release knows; the model behind it is a small one."""
STEPS = [{"weight": 50, "min_s": 20, "max_s": 60}]
"""A canary long enough to be met in it."""
SLEEPS = "import time\n\n\ndef train(rows, parameters, seed):\n    time.sleep(300)\n"

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


@dataclass(frozen=True)
class Person:
    """Somebody at a terminal, with a sandbox and a small model of their own."""

    home: Path
    source: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "SEATRIAL_HOME": str(self.home), "NO_COLOR": "1"}
        command = [sys.executable, "-m", "seatrial.app.cli", *arguments]
        return subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def says(self, *arguments: str) -> tuple[int, str]:
        with self.start(*arguments) as process:
            out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def release(self, *arguments: str) -> subprocess.Popen[str]:
        data = f"--data={self.source / 'orders.parquet'}"
        return self.start("release", MODEL, "--source", str(self.source), data, *arguments)

    def write(self, *, bias: float = -1.0, train: str = "", steps: list[dict[str, Any]] | None = None) -> None:
        """The model's folder: a ready-made graph, or a train.py."""
        folder = self.source / "models" / MODEL
        folder.mkdir(parents=True, exist_ok=True)
        spec = made.spec_data()
        spec["model"] = MODEL
        spec["training"] = {"kind": "python"} if train else {"kind": "onnx"}
        spec["canary"] = {"steps": steps or [{"weight": 50, "min_s": 0.5, "max_s": 60}], "watch_s": 0.5,
                          "replay_per_s": 800}  # fmt: skip
        (folder / "model.yaml").write_text(yaml.safe_dump(spec))
        (folder / "model.onnx").write_bytes(made.onnx_model(bias=bias))
        (folder / "train.py").write_text(train)
        suite = {"name": MODEL, "expectations": [EXPECTED], "meta": {}}
        (folder / "expectations.json").write_text(json.dumps(suite))

    def status(self) -> dict[str, Any]:
        code, out = self.says("status", MODEL, "--json")
        assert code == 0, out
        found: dict[str, Any] = json.loads(out)["models"][0]
        return found

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if belongs(process, str(self.home))]


EXPECTED = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "visits", "min_value": 0, "max_value": 9},
}


@pytest.fixture(scope="module")
def person(new_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """v1 of the model serves."""
    somebody = Person(home=new_home(), source=tmp_path_factory.mktemp("source"))
    rows = made.rows(600)
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 25, 23, tzinfo=UTC)
    each = pl.datetime_range(first, last, interval="1h", eager=True)
    rows.with_columns(at=each).write_parquet(somebody.source / "orders.parquet")
    somebody.write()
    with somebody.release() as released:
        out, _ = released.communicate(timeout=200)
    assert released.returncode == 0, out
    yield somebody
    somebody.says("down", "--force")


def until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """What it said up to the line that has `wanted` in it."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if re.search(wanted, line):
            return seen
    pytest.fail(f"it ended before it said {wanted}: {''.join(seen)}")


def wait_for(holds: Callable[[], bool]) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_after_a_second_ctrl_c_in_the_canary_the_command_puts_right_what_is_left(person: Person) -> None:
    before = person.status()
    person.write(bias=-1.05, steps=STEPS)
    with person.release() as process:
        until(process, "▶ run-canary")
        wait_for(lambda: person.status()["weights"].get("2", 0) > 0)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert re.search(rf"v2 of {MODEL} was on trial and nobody watched it: taken out", out), out
    assert out.splitlines()[-1].startswith(f"failed {MODEL}"), out
    assert "it was stopped while run-canary ran" in out
    after = person.status()
    assert (after["champion"], after["candidate"], after["weights"]) == (1, None, {"1": 100})
    assert set(after["answers"]) == set(before["answers"]) == {"v1"}
    assert not any("v2" in str(process.cmdline()) for process in person.processes())


def test_ctrl_c_in_training_is_no_bug(person: Person) -> None:
    person.write(train=SLEEPS)
    with person.release() as process:
        until(process, "▶ train-model")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "it was stopped while train-model ran" in out.splitlines()[-1]
    assert person.status()["answers"].keys() == {"v1"}


def test_down_names_the_release_that_runs_and_with_force_stops_it_first(person: Person) -> None:
    person.write(train=SLEEPS)
    with person.release() as process:
        until(process, "▶ train-model")
        code, out = person.says("down")
        assert code == 78, out
        assert f"release {MODEL} (process {process.pid}, " in out
        assert person.processes()

        code, said = person.says("down", "--force")
        assert code == 0, said
        assert f"stopping release {MODEL} (process {process.pid}, " in said
        assert said.splitlines()[-1] == "stopped: no process and no port is left"
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 75, out
    assert "the sandbox was taken down while train-model ran" in out.splitlines()[-1]
    assert person.processes() == []
