"""Whole releases through the command: refused, never ready, two at once, interrupted."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "seatrial.app.cli"]

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Person:
    """Somebody at a terminal, with a sandbox and models of their own."""

    home: Path
    source: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "SEATRIAL_HOME": str(self.home), "NO_COLOR": "1"}
        return subprocess.Popen(
            [*COMMAND, *arguments], env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def says(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code and the JSON object that was printed."""
        process = self.start(*arguments, "--json")
        out, err = process.communicate(timeout=300)
        assert out.strip(), f"seatrial {' '.join(arguments)} printed nothing; stderr: {err[-3000:]}"
        printed: dict[str, Any] = json.loads(out)
        return process.returncode, printed

    def release(self, model: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        return self.says("release", model, "--source", str(self.source), *arguments)

    def train_with(self, inverse_penalty: float) -> None:
        spec = self.source / "models/cart_abandonment/model.yaml"
        lines = [
            f"    C: {inverse_penalty}" if line.startswith("    C: ") else line
            for line in spec.read_text().splitlines()
        ]
        spec.write_text("\n".join(lines) + "\n")

    def rows(self) -> pl.DataFrame:
        return pl.read_parquet(next((self.home / "data" / "cart_abandonment").glob("*.parquet")))


@pytest.fixture(scope="module")
def person(new_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "models", source / "models", ignore=shutil.ignore_patterns("__pycache__"))
    spec = source / "models/cart_abandonment/model.yaml"  # more replay: the same evidence in half the time
    spec.write_text(spec.read_text().replace("replay_per_s: 400", "replay_per_s: 800"))
    somebody = Person(home=new_home(), source=source)
    yield somebody
    with somebody.start("down") as going:
        going.communicate(timeout=60)


def test_what_the_gates_refuse_serves_nobody_and_what_they_pass_serves_all(person: Person, tmp_path: Path) -> None:
    code, said = person.release("click_prediction")
    assert (code, said["outcome"], said["version"]) == (0, "promoted", 1), said

    code, said = person.release("cart_abandonment")
    assert code == 0, said
    assert said["outcome"] in {"promoted", "unchanged"}, said  # another test may have released it before
    served = said["version"]

    rows = person.rows()
    pl.concat([rows, rows.head(2)]).write_parquet(tmp_path / "twice.parquet")
    code, said = person.release("cart_abandonment", "--data", f"file://{tmp_path}/twice.parquet")
    assert (code, said["outcome"]) == (10, "refused"), said
    assert "unique_ids" in said["reasons"][0]

    labels = np.random.default_rng(1).permutation(rows["abandoned"].to_numpy())
    rows.with_columns(pl.Series("abandoned", labels)).write_parquet(tmp_path / "shuffled.parquet")
    code, said = person.release("cart_abandonment", "--data", f"file://{tmp_path}/shuffled.parquet")
    assert (code, said["outcome"]) == (10, "refused"), said
    assert "floor_" in said["reasons"][0]

    code, said = person.says("drill", "cart_abandonment", "--fault", "never_ready")
    assert code == 0, said
    assert said["outcome"] == "rolled_back", said

    _, status = person.says("status", "cart_abandonment")
    (model,) = status["models"]
    assert model["champion"] == served
    assert model["candidate"] is None
    assert set(model["answers"]) == {f"v{served}"}


def test_two_releases_of_one_model_at_once_take_turns_and_the_newer_serves(person: Person) -> None:
    person.release("cart_abandonment")
    person.train_with(0.4)
    first = person.start("release", "cart_abandonment", "--source", str(person.source), "--json")
    assert first.stderr is not None
    person_of_second = Person(home=person.home, source=person.source / "second")
    shutil.copytree(person.source / "models", person_of_second.source / "models")
    person_of_second.train_with(0.6)
    second = person_of_second.start("release", "cart_abandonment", "--source", str(person_of_second.source), "--json")
    ends = []
    for process in (first, second):
        out, err = process.communicate(timeout=400)
        assert out.strip(), err
        ends.append((process.returncode, json.loads(out)))
    outcomes = sorted(end["outcome"] for _, end in ends)
    assert outcomes == ["promoted", "superseded"], ends
    assert sorted(code for code, _ in ends) == [0, 12]
    promoted = next(end["version"] for _, end in ends if end["outcome"] == "promoted")
    _, status = person.says("status", "cart_abandonment")
    assert status["models"][0]["champion"] == promoted
    assert set(status["models"][0]["answers"]) == {f"v{promoted}"}


def test_ctrl_c_in_the_canary_leaves_traffic_where_it_was(person: Person) -> None:
    code, said = person.release("cart_abandonment")
    assert code == 0, said
    person.train_with(0.35)
    process = person.start("release", "cart_abandonment", "--source", str(person.source))
    assert process.stdout is not None
    for line in process.stdout:
        if "run-canary" in line:
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=200)
    assert process.returncode in {1, 11}, rest
    assert re.match(r"(failed|rolled_back) cart_abandonment", rest.strip().splitlines()[-1]), rest
    (model,) = person.says("status", "cart_abandonment")[1]["models"]
    before = said["version"]
    assert (model["champion"], model["candidate"], model["weights"]) == (before, None, {str(before): 100})
    assert set(model["answers"]) == {f"v{before}"}
