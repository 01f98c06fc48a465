"""A release is stopped: by Ctrl-C once or twice, or by `seatrial down --force`. What it left is put right, and said."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes_person import MODEL, Person

STEPS = [{"weight": 50, "min_s": 20, "max_s": 60}]
"""A canary long enough to be met in it."""
SLEEPS = "import time\n\n\ndef train(rows, parameters, seed):\n    time.sleep(300)\n"

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def person(new_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """v1 of the model serves."""
    somebody = Person(home=new_home(), source=tmp_path_factory.mktemp("source"))
    somebody.prepare()
    try:
        with somebody.release() as released:
            out, _ = released.communicate(timeout=200)
        assert released.returncode == 0, out
        yield somebody
    finally:
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
        time.sleep(0.05)


def test_after_a_second_ctrl_c_in_the_canary_the_command_puts_right_what_is_left(person: Person) -> None:
    person.write(bias=-1.05, steps=STEPS)
    with person.release() as process:
        said = "".join(until(process, "▶ run-canary"))
        (version,) = re.findall(r"outcome new, version (\d+)", said)
        wait_for(lambda: person.status()["weights"].get(version, 0) > 0)
        process.send_signal(signal.SIGINT)
        wait_for(person.is_stopping)  # two signals at once may come as one
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert re.search(rf"v{version} of {MODEL} was on trial and nobody watched it: taken out", out), out
    assert out.splitlines()[-1].startswith(f"failed {MODEL}"), out
    assert "it was stopped while run-canary ran" in out
    after = person.status()
    assert (after["champion"], after["candidate"], after["weights"]) == (1, None, {"1": 100})
    assert set(after["answers"]) == {"v1"}
    wait_for(lambda: not any(f"-v{version}-" in command for command in person.commands()))


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
