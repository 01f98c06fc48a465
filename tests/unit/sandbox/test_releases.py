"""`down` knows which releases run: it refuses, or stops them and waits for their end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.app.sandbox import down, releases, releasing
from seatrial.app.sandbox.places import home_of
from seatrial.errors import InvalidInput

WAITS = """
    import signal, sys
    from pathlib import Path
    from seatrial.app.sandbox import releasing

    def ended(*_):
        raise SystemExit(3)

    signal.signal(signal.SIGTERM, ended)
    with releasing(Path(sys.argv[1]), "release tea") as told:
        try:
            print("runs", flush=True)
            signal.pause()
        finally:
            print(told(), flush=True)
"""

Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a process that says that it is releasing, until SIGTERM."""
    begun: list[subprocess.Popen[str]] = []

    def one() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", textwrap.dedent(WAITS), str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        begun.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        return process

    yield one
    for process in begun:
        with process:
            process.kill()


def silent(_: str) -> None:
    """Say nothing."""


def test_down_refuses_while_a_release_runs_and_names_it(tmp_path: Path) -> None:
    with releasing(tmp_path, "release tea"), pytest.raises(InvalidInput) as refused:
        down(tmp_path, say=silent)
    assert re.match(rf"release tea \(process {os.getpid()}, for \d+ s\) runs in this sandbox", str(refused.value))
    assert "seatrial down --force" in str(refused.value)


def test_a_release_that_is_over_is_in_nobodys_way(tmp_path: Path) -> None:
    with releasing(tmp_path, "release tea") as told:
        assert told() == ""
    down(tmp_path, say=silent)
    assert list(home_of(tmp_path).releases.iterdir()) == []


def test_a_release_that_was_killed_is_in_nobodys_way(tmp_path: Path, start: Start) -> None:
    killed = start()
    assert [one.pid for one in releases.running(home_of(tmp_path))] == [killed.pid]
    killed.kill()
    killed.wait(timeout=10)
    assert releases.running(home_of(tmp_path)) == []
    assert list(home_of(tmp_path).releases.iterdir()) == []


def test_with_force_every_release_is_stopped_told_why_and_waited_for(tmp_path: Path, start: Start) -> None:
    two = [start(), start()]
    said: list[str] = []
    down(tmp_path, say=said.append, force=True)
    assert [process.wait(timeout=10) for process in two] == [3, 3]
    assert [process.stdout.read() for process in two if process.stdout] == ["the sandbox was taken down\n"] * 2
    named = {int(found[1]) for line in said if (found := re.match(r"stopping release tea \(process (\d+),", line))}
    assert named == {process.pid for process in two}
    assert list(home_of(tmp_path).releases.iterdir()) == []


def test_with_force_one_that_does_not_end_is_named_and_left_behind(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "ENDS_WITHIN_S", 0.0)
    monkeypatch.setattr(os, "kill", lambda *_: None)
    process = start()
    said: list[str] = []
    down(tmp_path, say=said.append, force=True)
    assert process.poll() is None
    assert any("does not end" in line for line in said)
