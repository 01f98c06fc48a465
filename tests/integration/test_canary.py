"""run_canary for real: S3, Traefik, the control API, Tritons and a load that knows every right answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from fakes_rollout import HOLDOUT, MODEL, SPEC
from test_roll_out import ROOT, Real

from seatrial import verdict
from seatrial.adapters import gateway
from seatrial.adapters.replay import HttpReplay
from seatrial.app import sandbox
from seatrial.app.drill import drill_source, marked_requests, marker_of
from seatrial.triton import requests
from seatrial.verdict import Verdict
from steps.run_canary.__main__ import run
from steps.run_canary.contract import Inputs, Outputs
from steps.run_canary.ports import Ports

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROWS = 200


class World(Real):
    """Versions on trial in a sandbox."""

    def __init__(self, tmp_path: Path, home: Path, up: sandbox.Sandbox) -> None:
        super().__init__(tmp_path, home, up)
        self.up = up
        self.models: dict[int, bytes] = {}
        self.answers_as: dict[int, int] = {}
        self.traffic = gateway.TraefikTraffic(up.gateway_metrics_url, "seatrial")

    def onnx(self, version: int) -> bytes:
        return self.models.get(version) or super().onnx(version)

    def golden(self, version: int) -> bytes:
        return super().golden(self.answers_as.get(version, version))

    def replay(self, version: int) -> bytes:
        chance = np.random.default_rng(4)
        columns: dict[str, Any] = {
            "price": chance.normal(size=(ROWS, 1)).astype(np.float32),
            "visits": chance.integers(0, 4, size=(ROWS, 1)),
            "shop": chance.choice(["hill", "harbour"], size=(ROWS, 1)),
            "member": chance.random((ROWS, 1)) < 0.5,
        }
        logit = 1.5 * columns["price"] + 0.5 * columns["visits"] + np.where(columns["shop"] == "hill", -1.0, 0.2)
        logit = logit + 0.4 * columns["member"] - 1.0 - self.answers_as.get(version, version) / 10
        answers = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return requests.lines(requests.examples(SPEC, columns, answers, range(ROWS), [f"r{i}" for i in range(ROWS)]))

    def canary(self, version: int) -> tuple[Outputs, Verdict]:
        self.runs += 1
        scratch = self.tmp_path / f"canary{self.runs}"
        scratch.mkdir()
        ports = Ports(
            store=self.store,
            router=self.router,
            predictions=self.predictions,
            traffic=self.traffic,
            replay=HttpReplay(self.up.gateway_url),
            clock=self.time,
            signing_key=self.key,
            trusted_keys=(self.key.public_key(),),
            promote_on_replay=True,
        )
        asked = Inputs(
            model_name=MODEL,
            version=version,
            release_id=f"uid-{version}",
            bundle_digest=self.bundles[version],
            reason="a test",
        )
        outputs = run(asked, scratch, ports)
        return outputs, verdict.verify(outputs.verdict.read_bytes(), [self.key.public_key()])

    def close(self) -> None:
        self.traffic.close()
        super().close()


@pytest.fixture(scope="module")
def world(new_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = new_home()
    said: list[str] = []
    up = sandbox.up(home, source=ROOT, say=said.append)
    made = World(tmp_path_factory.mktemp("work"), home, up)
    yield made
    made.close()
    sandbox.down(home, say=said.append)


class Load:
    """The load in its own process; it marks requests from the moment that `version` has traffic."""

    def __init__(self, world: World, version: int) -> None:
        self._world, self._version = world, version
        self._folder = world.tmp_path / f"load{version}"
        self._folder.mkdir()
        clean = world.replay(1)
        marked = marked_requests(world.onnx(1), clean, SPEC, marker_of(SPEC))
        (self._folder / "clean.jsonl").write_bytes(clean)
        (self._folder / "marked.jsonl").write_bytes(marked)

    def __enter__(self) -> Self:
        flags = {
            "--gateway": self._world.up.gateway_url,
            "--model": MODEL,
            "--requests": "clean.jsonl",
            "--marked-requests": "marked.jsonl",
            "--marker-file": "go",
            "--log": "log.jsonl",
            "--rate": "200",
            "--seconds": "120",
        }
        command = [sys.executable, "-m", "seatrial.app.load", *(text for pair in flags.items() for text in pair)]
        self._process = subprocess.Popen(command, cwd=self._folder, env={"PYTHONPATH": str(ROOT)})
        threading.Thread(target=self._mark, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(1.0)
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(30) == 0

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self._folder / "log.jsonl").read_text().splitlines()]

    def _mark(self) -> None:
        while self._process.poll() is None:
            if self._world.router.read(MODEL).weights.get(self._version):
                (self._folder / "go").touch()
                return
            time.sleep(0.1)


def test_a_first_release_a_drill_and_an_honest_second_version(world: World) -> None:
    """One story, because each part needs the champion of the one before."""
    world.package(1, champion=None)
    assert world.roll(1).outcome == "deployed"
    outputs, found = world.canary(1)
    assert (outputs.decision, outputs.outcome, found.reasons) == ("pass", "promoted", ())
    assert "v1" in world.answered_by(1)

    source = world.tmp_path / "source"
    source.mkdir()
    (source / "expectations.json").write_text("{}")
    drill = drill_source(world.onnx(1), SPEC, "errors", world.tmp_path / "drill", source=source)
    world.models[2], world.answers_as[2] = (drill.folder / "model.onnx").read_bytes(), 1
    world.package(2, champion=1)
    assert world.roll(2).outcome == "deployed"
    with Load(world, 2) as load:
        outputs, found = world.canary(2)
    assert (outputs.decision, outputs.outcome) == ("fail", "rolled_back")
    assert next(check for check in found.checks if check.name == "errors").decision == "fail"
    *rows, last = load.rows()
    summary = last["summary"]
    assert summary["lost"] == summary["wrong"] == 0
    assert 0 < summary["failed"] < 0.6 * summary["marked"]
    assert all(row["r"] for row in rows if row["v"] is not None)
    assert [row["v"] for row in rows[-100:]] == [1] * 100
    assert any(row["m"] for row in rows[-100:])
    assert set(world.answered_by(1)) == {"v1"}

    world.package(3, champion=1)
    assert world.roll(3).outcome == "deployed"
    outputs, found = world.canary(3)
    assert (outputs.decision, outputs.outcome, found.reasons) == ("pass", "promoted", ())
    assert set(world.answered_by(3)) == {"v3"}
    assert HOLDOUT not in found.judged.values()
