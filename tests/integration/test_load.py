"""The senders of requests against a small HTTP server on this machine."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from seatrial.adapters.replay import HttpReplay
from seatrial.triton import requests
from seatrial.triton.requests import Example

pytestmark = pytest.mark.integration

CLEAN = [Example(id=f"r{i}", request={"id": f"r{i}"}, answer={"p": [float(i)]}) for i in range(10)]
MARKED = [Example(id=f"m{i}", request={"id": f"m{i}"}, answer={"p": [float(i)]}) for i in range(10)]


class Gateway:
    """Every fourth answer is v2's; v2 is wrong on r3 and fails on marked requests."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._asked = 0
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    async def infer(self, request: web.Request) -> web.Response:
        self.headers.append({k.lower(): v for k, v in request.headers.items()})
        name = (await request.json())["id"]
        self._asked += 1
        version = 2 if self._asked % 4 == 0 or "x-seatrial-arm" in request.headers else 1
        if version == 2 and name.startswith("m"):
            return web.json_response({"error": "index out of bounds"}, status=500)
        value = float(name[1:]) + (5.0 if version == 2 and name == "r3" else 0.0)
        tensor = {"name": "p", "shape": [1, 1], "datatype": "FP32", "data": [value]}
        return web.json_response({"model_name": "tea", "model_version": str(version), "outputs": [tensor]})

    def start(self) -> None:
        self._thread.start()
        assert self._up.wait(10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_post("/v2/models/tea/infer", self.infer)
        runner = web.AppRunner(app)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._up.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    made.start()
    yield made
    made.stop()


def test_a_replay_keeps_its_rate_marks_its_requests_and_judges_the_candidates_answers(gateway: Gateway) -> None:
    replay = HttpReplay(gateway.url)
    replay.start("tea", CLEAN, version=2, per_s=200, arm=None)
    time.sleep(1.5)
    tally = replay.stop()
    assert 200 < tally.requests <= 320
    assert tally.answered[2] == pytest.approx(tally.requests / 4, rel=0.1)
    assert tally.right + tally.wrong == tally.answered[2]
    assert tally.wrong > 0
    assert tally.suspects == ("r3",)
    assert (tally.failed, tally.lost) == (0, 0)
    assert {h["x-seatrial-replay"] for h in gateway.headers} == {"1"}
    assert not any("x-seatrial-arm" in h for h in gateway.headers)
    assert replay.stop() == tally


def test_by_header_every_request_reaches_the_candidate_and_failures_are_suspects(gateway: Gateway) -> None:
    replay = HttpReplay(gateway.url)
    replay.start("tea", MARKED, version=2, per_s=100, arm="canary")
    time.sleep(0.5)
    tally = replay.stop()
    assert tally.failed == tally.requests > 0
    assert set(tally.suspects) <= {e.id for e in MARKED}
    assert all(h["x-seatrial-arm"] == "canary" for h in gateway.headers)


def test_requests_that_nobody_answers_are_lost_and_the_replay_goes_on() -> None:
    replay = HttpReplay("http://127.0.0.1:9")
    replay.start("tea", CLEAN, version=2, per_s=100, arm=None)
    time.sleep(0.5)
    tally = replay.stop()
    assert tally.lost == tally.requests > 10


def test_a_replay_does_not_wait_for_a_gateway_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        replay = HttpReplay(f"http://127.0.0.1:{silent.getsockname()[1]}")
        replay.start("tea", CLEAN, version=2, per_s=100, arm=None)
        time.sleep(0.3)
        started = time.monotonic()
        assert replay.stop().requests == 0
        assert time.monotonic() - started < 2


def test_a_replay_that_was_never_started_stops_empty() -> None:
    assert HttpReplay("http://127.0.0.1:9").stop().requests == 0


def load(gateway: str, folder: Path, *more: str) -> list[str]:
    (folder / "clean.jsonl").write_bytes(requests.lines([e for e in CLEAN if e.id != "r3"]))
    (folder / "marked.jsonl").write_bytes(requests.lines(MARKED))
    given = {"--gateway": gateway, "--model": "tea", "--requests": "clean.jsonl", "--log": "log.jsonl"}
    flags = [text for pair in given.items() for text in pair]
    return [sys.executable, "-m", "seatrial.app.load", *flags, *more]


ROOT = Path(__file__).resolve().parents[2]


def started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)


def test_the_load_writes_down_every_request_and_knows_what_was_lost(gateway: Gateway, tmp_path: Path) -> None:
    flags = ["--marked-requests", "marked.jsonl", "--marker-after", "200", "--rate", "200", "--seconds", "2"]
    process = started(load(gateway.url, tmp_path, *flags), tmp_path)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said.decode()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    summary, rows = lines[-1]["summary"], lines[:-1]
    assert summary["requests"] == len(rows) >= 360
    assert summary["clean_not_right"] == 0
    assert [row["m"] for row in rows].count(True) == summary["marked"] > 100
    assert summary["failed"] == pytest.approx(summary["marked"] / 4, rel=0.2)
    assert all(row["r"] for row in rows if not row["m"])
    assert all(row["s"] == 200 for row in rows if row["v"] == 1)


def test_the_load_begins_to_mark_when_the_file_appears_and_ends_when_told(gateway: Gateway, tmp_path: Path) -> None:
    flags = ["--marked-requests", "marked.jsonl", "--marker-file", "go", "--rate", "100", "--seconds", "60"]
    process = started(load(gateway.url, tmp_path, *flags), tmp_path)
    log = tmp_path / "log.jsonl"
    try:
        _until(lambda: log.exists() and len(log.read_text().splitlines()) > 50)
        assert '"m":true' not in log.read_text()
        (tmp_path / "go").touch()
        _until(lambda: '"m":true' in log.read_text())
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert "summary" in json.loads(log.read_text().splitlines()[-1])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--gateway", "http://example.com"], b"on this machine"),
        (["--rate", "100000"], b"bounded"),
        (["--seconds", "0"], b"bounded"),
        (["--requests", "log.jsonl"], b"no request"),
        (["--model", "Tea"], b"a model name is"),
    ],
)
def test_the_load_refuses_what_is_out_of_bounds(tmp_path: Path, more: list[str], says: bytes) -> None:
    process = started([*load("http://127.0.0.1:9", tmp_path), *more], tmp_path)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 78
    assert says in said


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
