"""The command against a sandbox of its own: releases one by one, and one that is interrupted."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = "cart_abandonment"
WITHIN_S = 240

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Seatrial:
    """The command with a home of its own."""

    home: Path
    sources: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "seatrial.app.cli", *arguments],
            env={**os.environ, "SEATRIAL_HOME": str(self.home), "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """The command's stdout, after it ended as it must."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=WITHIN_S)
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{out}\n{err}"
        return out

    def source(self, strength: float) -> str:
        """A source whose model has another training parameter."""
        folder = self.sources / f"c-{strength}"
        shutil.copytree(ROOT / "models" / MODEL, folder / "models" / MODEL, dirs_exist_ok=True)
        spec = folder / "models" / MODEL / "model.yaml"
        spec.write_text(re.sub(r"^    C: .*$", f"    C: {strength}", spec.read_text(), flags=re.MULTILINE))
        return f"--source={folder}"

    def facts(self) -> dict[str, Any]:
        """What status says of the model."""
        (facts,) = json.loads(self("status", MODEL, "--json"))["models"]
        assert isinstance(facts, dict)
        return facts


@pytest.fixture(scope="module")
def seatrial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seatrial]:
    """A home in which v1 was promoted."""
    folder = tmp_path_factory.mktemp("command")
    command = Seatrial(home=folder / "home", sources=folder / "sources")
    raw = ROOT / ".seatrial" / "data" / MODEL / "raw"
    if raw.is_dir():  # what was downloaded once is not downloaded again
        shutil.copytree(raw, command.home / "data" / MODEL / "raw")
    try:
        command("release", MODEL, command.source(0.1))
        yield command
    finally:
        command("down")


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_releases_one_by_one_and_one_that_is_interrupted(seatrial: Seatrial) -> None:
    """One story, in this order: each part stands on what the one before left."""
    nothing_changed(seatrial)
    a_newer_version_and_the_way_back(seatrial)
    ctrl_c_leaves_traffic_where_it_was(seatrial)


def nothing_changed(seatrial: Seatrial) -> None:
    assert re.fullmatch(rf"unchanged {MODEL} v1  \d+ s", last_line(seatrial("release", MODEL, seatrial.source(0.1))))
    seatrial("rollback", MODEL, code=78)
    facts = seatrial.facts()
    assert (facts["weights"], facts["answers"], len(facts["services"])) == ({"1": 100}, {"v1": 10}, 1)


def a_newer_version_and_the_way_back(seatrial: Seatrial) -> None:
    promoted = json.loads(seatrial("release", MODEL, seatrial.source(0.2), "--json"))
    assert (promoted["outcome"], promoted["version"], promoted["exit_code"]) == ("promoted", 2, 0)
    assert re.fullmatch(rf"{MODEL} v2 answered: probability 0\.\d+", last_line(seatrial("predict", MODEL)))
    back = last_line(seatrial("rollback", MODEL, "--reason", "test"))
    assert re.fullmatch(rf"rolled_back {MODEL}: v1 answers \(20 of 2\d\)", back)
    facts = seatrial.facts()
    assert (facts["champion"], facts["previous"], facts["reason"]) == (1, None, "test")


def ctrl_c_leaves_traffic_where_it_was(seatrial: Seatrial) -> None:
    before = seatrial.facts()["champion"]
    process = seatrial.start("release", MODEL, seatrial.source(0.35))
    assert process.stdout is not None
    for line in process.stdout:
        if "run-canary" in line:
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=WITHIN_S)
    assert process.returncode in {1, 11}, rest
    assert re.match(rf"(failed|rolled_back) {MODEL}", last_line(rest)), rest
    facts = seatrial.facts()
    assert (facts["champion"], facts["candidate"], facts["weights"]) == (before, None, {str(before): 100})
    assert facts["answers"] == {f"v{before}": 10}
