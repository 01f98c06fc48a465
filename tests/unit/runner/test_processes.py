"""Real processes: files, environment, signals, deadlines, locks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from fakes_runner import Stage, dag, document, phases, pod, task

from seatrial.app import runner
from seatrial.app.runner import manifest
from seatrial.app.runner.locks import Locks
from seatrial.app.runner.loop import Loop
from seatrial.app.runner.plan import Run
from seatrial.errors import InvalidInput


def node(workflow: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [n for n in workflow["status"]["nodes"].values() if n["displayName"] == name]
    return found  # type: ignore[no-any-return]


def two(**more: Any) -> dict[str, Any]:
    """a gives a file and a folder; b takes both."""
    artifacts = [{"name": name, "path": f"/io/out/{name}"} for name in ("file", "folder")]
    taken = [{"name": name, "path": f"/io/in/{name}"} for name in ("one", "many")]
    taking = task("b", "a.Succeeded")
    taking["arguments"] = {
        "artifacts": [
            {"name": "one", "from": "{{tasks.a.outputs.artifacts.file}}"},
            {"name": "many", "from": "{{tasks.a.outputs.artifacts.folder}}"},
        ]
    }
    return document(
        dag("main", task("a"), taking),
        pod("a", outputs={"d": "none"}, files={"artifacts": artifacts}, **more),
        pod("b", inputs={"artifacts": taken}),
    )


GIVES = {"params": {"d": "pass\n"}, "files": {"file": "f", "folder": {"x": "1", "y": "2"}}}


def alone(**more: Any) -> dict[str, Any]:
    return document(dag("main", task("a")), pod("a", outputs={"d": "none"}, **more))


@contextmanager
def once(holds: Callable[[], bool], do: Callable[[], object]) -> Iterator[None]:
    """Do something from another thread when a condition holds."""

    def wait() -> None:
        end = time.monotonic() + 20
        while not holds():
            if time.monotonic() > end:
                return
            time.sleep(0.005)
        do()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def gone(pid: int) -> bool:
    """Whether the process ends within five seconds: a kill that was sent takes its moment."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_files_and_parameters_arrive_and_the_run_is_on_disk(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"a": [GIVES]})
    finished = stage.run(two())
    assert finished["status"]["phase"] == "Succeeded"
    assert stage.seen("b")["inputs"] == {"one": "f", "many/x": "1", "many/y": "2"}
    assert node(finished, "a")["outputs"]["parameters"] == [{"name": "d", "value": "pass"}]
    folder = tmp_path / "runs" / finished["metadata"]["name"]
    assert json.loads((folder / "workflow.json").read_text()) == finished
    assert (folder / node(finished, "a")["id"] / "main.log").read_text() == "a attempt 0\n"
    assert (folder / node(finished, "b")["id"] / "io/in/one").stat().st_nlink == 2


def test_the_record_is_written_and_told_at_each_change(tmp_path: Path) -> None:
    stage, told = Stage(tmp_path, {"a": [GIVES]}), []
    stage.run(two(), observe=lambda workflow: told.append(phases(workflow)))
    assert [seen.get("b") for seen in told] == [None, "Running", "Succeeded"]
    assert told[0] == dict.fromkeys(told[0], "Running")
    assert "a" in told[0]


def test_a_step_gets_a_clean_environment_and_only_what_its_template_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the person")
    stage = Stage(tmp_path)
    made = alone()
    made["spec"]["templates"][1]["container"]["envFrom"].append({"secretRef": {"name": "key"}})
    arguments = stage.arguments(made)
    arguments["environment"] |= {"key": {"SIGNING": "k\nk"}, "other": {"NOT": "mine"}}
    finished = runner.run(made, **arguments)
    seen, folder = stage.seen("a"), tmp_path / "runs" / finished["metadata"]["name"] / node(finished, "a")["id"]
    env = seen["env"]
    assert set(env) - {"LC_CTYPE"} == {
        *("PATH", "LANG", "HOME", "TMPDIR", "SEATRIAL_IO", "SEATRIAL_TERMINATION_LOG", "PLAY", "SIGNING"),
        *("PYTHONUNBUFFERED", "DO_NOT_TRACK", "GX_ANALYTICS_ENABLED", "MLFLOW_DISABLE_TELEMETRY"),
    }
    assert env["SIGNING"] == "k\nk"
    assert env["SEATRIAL_IO"] == str(folder / "io")
    assert env["HOME"] == env["TMPDIR"] == seen["folder"] == str(folder / "tmp")
    assert env["GX_ANALYTICS_ENABLED"] == "false"


def test_a_crashed_step_leaves_the_defaults(tmp_path: Path) -> None:
    finished = Stage(tmp_path, {"a": [{"exit": 1, "params": {}}]}).run(alone())
    assert finished["status"]["phase"] == "Failed"
    assert node(finished, "a")["outputs"] == {"parameters": [{"name": "d", "value": "none"}], "exitCode": "1"}


@pytest.mark.parametrize(
    ("act", "phase", "message"),
    [
        ({"kill": signal.SIGKILL}, "Failed", "main: Error (exit code 137)"),
        ({"kill": signal.SIGTERM}, "Failed", "main: Error (exit code 143)"),
        ({"exit": 78}, "Failed", "main: Error (exit code 78)"),
        ({"files": {"file": "f"}}, "Error", "output artifact folder is not at /io/out/folder"),
        ({**GIVES, "params": {"d": "x" * 262_145}}, "Error", "output parameter d: it may have at most 262144 bytes"),
    ],
)
def test_how_a_step_ends_is_told_as_argo_tells_it(tmp_path: Path, act: Any, phase: str, message: str) -> None:
    finished = Stage(tmp_path, {"a": [act]}).run(two())
    assert node(finished, "a")["phase"] == phase
    assert node(finished, "a")["message"].startswith(message)
    assert node(finished, "b")["phase"] == "Omitted"


def test_why_a_step_failed_is_its_nodes_message(tmp_path: Path) -> None:
    finished = Stage(tmp_path, {"a": [{"exit": 78, "last_words": "the data lacks\u2028the label\n"}]}).run(alone())
    assert node(finished, "a")["message"] == "main: Error (exit code 78): the data lacks\u2028the label\n"


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    finished = stage.run(alone(), commands={"seatrial/a": [str(tmp_path / "no program")]})
    assert node(finished, "a")["phase"] == "Error"
    assert "cannot be started" in node(finished, "a")["message"]


def test_a_symlink_is_no_artifact(tmp_path: Path) -> None:
    act = {"files": {"folder": {}}, "link": "file"}
    finished = Stage(tmp_path, {"a": [act]}).run(two())
    assert node(finished, "b")["phase"] == "Error"
    assert node(finished, "b")["message"] == "an artifact holds no symlink; got file"


def test_an_attempt_starts_with_fresh_folders(tmp_path: Path) -> None:
    retry = {
        "limit": "1",
        "retryPolicy": "Always",
        "expression": "lastRetry.exitCode == '75'",
        "backoff": {"duration": "20ms"},
    }
    stage = Stage(tmp_path, {"a": [{"exit": 75, "params": {"d": "half"}}, {}]})
    finished = stage.run(alone(retryStrategy=retry))
    assert finished["status"]["phase"] == "Succeeded"
    assert stage.attempts("a") == 2
    assert node(finished, "a")["outputs"]["parameters"] == [{"name": "d", "value": "none"}]


def test_a_step_past_its_deadline_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"a": [{"sleep": 60, "child": True}]})
    finished = stage.run(alone(activeDeadlineSeconds=1))
    assert node(finished, "a")["message"] == "Pod was active on the node longer than the specified deadline"
    assert node(finished, "a")["outputs"]["exitCode"] == "143"
    assert gone(int((tmp_path / "a.child").read_text()))


def test_what_a_step_leaves_running_ends_with_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"a": [{"child": True}]})
    assert stage.run(alone())["status"]["phase"] == "Succeeded"
    assert gone(int((tmp_path / "a.child").read_text()))


def test_a_step_that_does_not_listen_is_killed_after_the_grace(tmp_path: Path) -> None:
    stage, made = Stage(tmp_path, {"a": [{"sleep": 60, "deaf": True}]}), alone(activeDeadlineSeconds=1)
    given = stage.arguments(made)
    run = Run(manifest.read(made), "w-1", "u", "seatrial", {}, "main", time.time())
    (given["runs"] / "w-1").mkdir(parents=True)
    loop = Loop(run, given["commands"], given["environment"], given["runs"], Locks(given["locks"], "w-1"))
    finished = replace(loop, grace_s=0.2).until_over()
    assert node(finished, "a")["outputs"]["exitCode"] == "137"


def with_exit(play: dict[str, Any], tmp_path: Path) -> tuple[Stage, dict[str, Any]]:
    made = document(dag("main", task("a")), pod("a"), pod("leave"), hooks={"exit": {"template": "leave"}})
    return Stage(tmp_path, play), made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_and_the_exit_handler_runs(tmp_path: Path, number: signal.Signals) -> None:
    stage, made = with_exit({"a": [{"sleep": 60}]}, tmp_path)
    before = signal.getsignal(number)
    with once(stage.when_up("a"), lambda: os.kill(os.getpid(), number)):
        finished = stage.run(made)
    assert finished["status"]["phase"] == "Failed"
    assert finished["status"]["message"] == "Stopped with strategy 'Stop'"
    assert finished["spec"]["shutdown"] == "Stop"
    assert node(finished, "a")["message"] == "workflow shutdown with strategy:  Stop"
    assert stage.attempts("leave") == 1
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_terminates(tmp_path: Path) -> None:
    stage, made = with_exit({"a": [{"sleep": 60, "deaf": True}]}, tmp_path)
    record = tmp_path / "runs"

    def stopped() -> bool:
        return any('"shutdown"' in path.read_text() for path in record.glob("*/workflow.json"))

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with once(stage.when_up("a"), interrupt), once(stopped, interrupt):
        finished = stage.run(made)
    assert finished["status"]["message"] == "Stopped with strategy 'Terminate'"
    assert node(finished, "a")["outputs"]["exitCode"] == "137"
    assert stage.attempts("leave") == 0


def test_a_killed_runner_leaves_no_step_and_no_lock(tmp_path: Path) -> None:
    made = document(dag("main", task("a"), synchronization={"mutexes": [{"name": "m"}]}), pod("a"), parameters={})
    stage = Stage(tmp_path, {"a": [{"sleep": 60}]})
    (tmp_path / "made.json").write_text(json.dumps(made))
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from fakes_runner import Stage\n"
        "folder = Path(sys.argv[2]); stage = Stage.__new__(Stage); stage.folder = folder\n"
        "stage.run(json.loads((folder / 'made.json').read_text()))\n"
    )
    tests = Path(__file__).resolve().parents[2]
    owner = subprocess.Popen([sys.executable, "-c", code, str(tests), str(tmp_path)])
    with once(stage.when_up("a"), owner.kill):
        owner.wait()
    step = int(json.loads((tmp_path / "a.seen.json").read_text())["pid"])
    stage.set({"a": [{}]})
    assert stage.run(made)["status"]["phase"] == "Succeeded"
    assert gone(step)


def test_two_runs_of_one_lock_follow_each_other_and_the_second_says_that_it_waits(tmp_path: Path) -> None:
    made = document(
        dag("main", task("r")),
        dag("r", task("a"), synchronization={"mutexes": [{"name": "roll/out"}]}),
        pod("a"),
    )
    stage = Stage(tmp_path, {"a": [{"sleep": 0.3}]})
    done: list[dict[str, Any]] = []
    messages: list[str] = []

    def watch(workflow: dict[str, Any]) -> None:
        messages.extend(n.get("message", "") for n in workflow["status"]["nodes"].values())

    threads = [threading.Thread(target=lambda: done.append(stage.run(made, observe=watch))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = sorted((node(workflow, "a") for workflow in done), key=lambda n: n["startedAt"])
    assert first["finishedAt"] <= second["startedAt"]
    assert "Waiting for seatrial/Mutex/roll/out lock. Lock status: 0/1" in messages


def test_a_lock_is_held_by_one_and_names_its_owner(tmp_path: Path) -> None:
    mine, other = Locks(tmp_path, "mine"), Locks(tmp_path, "other")
    assert mine.acquire("n/Mutex/x")
    assert mine.acquire("n/Mutex/x")
    assert not other.acquire("n/Mutex/x")
    assert other.acquire("n/Mutex/y")
    (file,) = [path for path in tmp_path.iterdir() if path.name.endswith("x.lock")]
    assert json.loads(file.read_text()) == {"pid": os.getpid(), "run": "mine"}
    mine.release("n/Mutex/x")
    assert other.acquire("n/Mutex/x")
    other.release_all()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "needs the parameters ['M']"),
        ({"M": "m", "N": "n"}, "has no parameters ['N']"),
        ({"M": "{{x}}"}, "hold '{{'"),
    ],
)
def test_wrong_parameters_start_nothing(tmp_path: Path, given: dict[str, str], says: str) -> None:
    made = alone()
    made["spec"]["arguments"] = {"parameters": [{"name": "M"}]}
    with pytest.raises(InvalidInput) as caught:
        Stage(tmp_path).run(made, parameters=given)
    assert says in str(caught.value)
    assert not (tmp_path / "runs").exists()
