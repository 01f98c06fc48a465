"""What is shown of a run: its steps in order, what they say, and how it ended, on one line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from seatrial.app.commands._running import ended
from seatrial.app.views.follow import Plain, from_logs, from_outputs
from seatrial.app.views.outcome import Ended, line
from seatrial.app.views.steps import lines
from seatrial.app.views.words import last_event, words

TEMPLATE: dict[str, Any] = {
    "spec": {
        "entrypoint": "release",
        "templates": [
            {"name": "release", "dag": {"tasks": [{"name": "build", "template": "build"}]}},
            {"name": "build", "dag": {"tasks": [{"name": n, "template": n} for n in ("validate-data", "train-model")]}},
            {"name": "validate-data"},
            {"name": "train-model"},
            {"name": "settle-release"},
        ],
        "hooks": {"exit": {"template": "settle-release"}},
    }
}
RUN = "release-x"


def node(name: str, phase: str, *, kind: str = "Pod", template: str = "", **more: Any) -> dict[str, Any]:
    times = {"startedAt": "2026-01-01T00:00:00.000000Z"}
    if phase in {"Succeeded", "Failed"}:
        times["finishedAt"] = "2026-01-01T00:00:02.500000Z"
    return (
        {"id": name, "displayName": name, "type": kind, "templateName": template or name, "phase": phase} | times | more
    )


def workflow(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": RUN}, "status": {"nodes": {one["id"]: one for one in nodes}}}


def with_summary(runs: Path, facts: dict[str, Any], *, phase: str = "Failed", **more: Any) -> dict[str, Any]:
    """The node of settle-release, with the summary that it wrote."""
    (runs / "summary").write_text(json.dumps(facts))
    outputs = {"artifacts": [{"name": "summary", "s3": {"key": "summary"}}]}
    return node(f"{RUN}.onExit", phase, template="settle-release", outputs=outputs, **more)


def log(runs: Path, node_id: str, *events: dict[str, Any] | str) -> None:
    place = runs / RUN / node_id / "main.log"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events))


def test_every_step_of_the_template_is_a_line_in_its_order_begun_or_not() -> None:
    shown = lines(TEMPLATE, workflow(node("build", "Running", kind="DAG"), node("validate-data", "Succeeded")))
    assert [(one.depth, one.name, one.phase) for one in shown] == [
        (0, "build", "Running"),
        (1, "validate-data", "Succeeded"),
        (1, "train-model", ""),
        (0, "settle-release", ""),
    ]
    assert shown[1].seconds() == 2.5
    assert shown[2].seconds() is None


def test_a_retried_step_shows_its_latest_attempt() -> None:
    retry = node("train-model", "Running", kind="Retry", children=["a0", "a1"])
    shown = lines(TEMPLATE, workflow(retry, node("a0", "Failed"), node("a1", "Running")))
    assert shown[2].node_id == "a1"


def test_without_a_terminal_each_start_and_each_end_is_one_line(tmp_path: Path) -> None:
    told = io.StringIO()
    plain = Plain(TEMPLATE, from_logs(tmp_path), Console(file=told, width=20))
    for phase in ("Running", "Running", "Succeeded", "Succeeded"):
        log(tmp_path, "validate-data", {"event": "judged", "decision": "pass", "reasons": []})
        plain(workflow(node("validate-data", phase)))
    assert told.getvalue().splitlines() == [
        "▶ validate-data    starts",
        "✔ validate-data    succeeded    2.5 s  pass",
    ]


def test_a_release_that_waits_for_another_one_says_so(tmp_path: Path) -> None:
    told = io.StringIO()
    waiting = node("build", "Pending", kind="DAG", message="Waiting for seatrial/Mutex/roll-out-m lock.")
    Plain(TEMPLATE, from_logs(tmp_path), Console(file=told))(workflow(waiting))
    assert "waits: another release of this model is rolling out" in told.getvalue()


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("main: Error (exit code 78): there is no such object", "there is no such object"),
        ("main: Error (exit code 10)", "outcome refused"),
        ("", "outcome refused"),
    ],
)
def test_without_its_log_a_step_tells_why_it_failed_or_what_it_gave(message: str, told: str) -> None:
    given = {"parameters": [{"name": "outcome", "value": "refused"}, {"name": "left", "valueFrom": {}}]}
    retry = node("train-model", "Failed", kind="Retry", children=["a0"], message="retryStrategy says no", outputs=given)
    attempt = node("a0", "Failed", message=message, outputs=given)
    line = next(one for one in lines(TEMPLATE, workflow(retry, attempt)) if one.name == "train-model")
    assert from_outputs()(line, {}) == told


@pytest.mark.parametrize(
    ("phase", "message", "waits"),
    [
        ("Pending", "Waiting for seatrial/Mutex/roll-out-m lock. Lock status: 0/1", True),
        ("Running", "Waiting for seatrial/Mutex/roll-out-m lock. Lock status: 0/1", True),
        ("Pending", "Unschedulable: 0/1 nodes are available", True),
        ("Pending", "PodInitializing", False),
        ("Running", "", False),
        ("Failed", "Waiting for the end", False),
    ],
)
def test_what_waits_says_for_what_and_a_pod_that_starts_does_not_wait(phase: str, message: str, *, waits: bool) -> None:
    (line,) = (
        one
        for one in lines(TEMPLATE, workflow(node("train-model", phase, message=message)))
        if one.name == "train-model"
    )
    assert line.waits is waits


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"event": "judged", "decision": "fail", "reasons": ["unique_ids: 3"]}, "fail unique_ids: 3"),
        ({"event": "look", "words": "10 %: 5 of 60"}, "10 %: 5 of 60"),
        ({"event": "route_changed", "weights": {"1": 90, "2": 10}}, "route: v1 90, v2 10"),
        ({"event": "failed", "error": "no label"}, "no label"),
        ({"event": "done", "outputs": {"version": 2, "pod_spec_patch": '{"a": 1}', "x": ""}}, "version 2"),
        ({"event": "data_read", "rows": 12}, "data read rows 12"),
    ],
)
def test_events_are_told_in_words(event: dict[str, Any], said: str) -> None:
    assert words(event) == said


def test_a_log_without_events_tells_its_last_line(tmp_path: Path) -> None:
    log(tmp_path, "n", "Traceback", "ModuleNotFoundError: no module", "")
    assert last_event(tmp_path / RUN / "n" / "main.log") == "ModuleNotFoundError: no module"
    assert last_event(tmp_path / "nowhere") == ""


DIGEST = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {"outcome": "promoted", "version": 1, "bundle": DIGEST, "image": f"r/m@{DIGEST}"},
            "promoted m v1  bundle sha256:abababababab  image sha256:abababababab  71 s",
        ),
        ({"outcome": "unchanged", "version": 1}, "unchanged m v1  71 s"),
        (
            {"outcome": "refused", "version": 3, "reasons": ("unique_ids: 3\nids", "b")},
            "refused m v3  unique_ids: 3 ids  71 s",
        ),
        (
            {"outcome": "failed", "version": None, "reasons": ("train-model: gone",)},
            "failed m  train-model: gone  71 s",
        ),
    ],
)
def test_the_last_line_says_how_it_ended(facts: dict[str, Any], said: str) -> None:
    assert line(Ended(model="m", exit_code=0, seconds=71.2, **facts)) == said


def test_a_refusal_gives_the_check_and_exits_with_10(tmp_path: Path) -> None:
    facts = {"outcome": "refused", "version": 3, "reasons": ["validate-data: unique_ids: 20 ids"]}
    log(tmp_path, f"{RUN}.onExit", {"event": "done", "outputs": {"outcome": "refused"}})
    over = ended(
        "m", TEMPLATE, workflow(node("validate-data", "Succeeded"), with_summary(tmp_path, facts)), tmp_path, seconds=1
    )
    assert (over.outcome, over.version, over.exit_code, over.reasons) == ("refused", 3, 10, ("unique_ids: 20 ids",))


@pytest.mark.parametrize(("code", "wanted"), [("78", 78), ("75", 75), ("76", 76), ("1", 1), ("137", 1), ("", 1)])
def test_a_failed_release_exits_as_the_step_that_failed(code: str, wanted: int, tmp_path: Path) -> None:
    log(tmp_path, "train-model", {"event": "failed", "error": "the data lacks the label"})
    failed = node("train-model", "Failed", message="main: Error", outputs={"exitCode": code})
    seen = workflow(failed, with_summary(tmp_path, {"outcome": "failed", "version": 2, "reasons": ["a", "b"]}))
    over = ended("m", TEMPLATE, seen, tmp_path, seconds=1)
    assert (over.outcome, over.exit_code) == ("failed", wanted)
    assert over.reasons[0] == "train-model: the data lacks the label"


def test_without_the_word_of_settle_release_a_run_failed(tmp_path: Path) -> None:
    seen = workflow(
        node("train-model", "Succeeded"), node(f"{RUN}.onExit", "Failed", template="settle-release", message="gone")
    )
    over = ended("m", TEMPLATE, seen, tmp_path, seconds=1)
    assert (over.outcome, over.exit_code, over.reasons) == ("failed", 1, ("settle-release: gone",))


@pytest.mark.parametrize(
    ("word", "code", "reason"),
    [
        ("", 130, "it was stopped while train-model ran"),
        ("the sandbox was taken down", 75, "the sandbox was taken down while train-model ran"),
    ],
)
@pytest.mark.parametrize("how", ["Stop", "Terminate"])
def test_a_release_that_was_stopped_says_so_and_is_no_bug(
    how: str, word: str, code: int, reason: str, tmp_path: Path
) -> None:
    log(tmp_path, "train-model", {"event": "training", "rows": 12})
    killed = node("train-model", "Failed", message="workflow shutdown with strategy: Stop", outputs={"exitCode": "143"})
    told = [with_summary(tmp_path, {"outcome": "failed", "reasons": ["a"]})] if how == "Stop" else []
    seen = {**workflow(killed, *told), "spec": {"shutdown": how}}
    over = ended("m", TEMPLATE, seen, tmp_path, seconds=1, word=word)
    assert (over.outcome, over.exit_code, over.reasons[0]) == ("failed", code, reason)


def test_a_release_that_was_stopped_in_the_canary_has_gone_back_and_says_why(tmp_path: Path) -> None:
    facts = {"outcome": "rolled_back", "version": 2, "reasons": ["run-canary: Failed (exit 143)"]}
    killed = node("train-model", "Failed", message="workflow shutdown with strategy: Stop")
    seen = {**workflow(killed, with_summary(tmp_path, facts)), "spec": {"shutdown": "Stop"}}
    over = ended("m", TEMPLATE, seen, tmp_path, seconds=1)
    assert (over.outcome, over.exit_code, over.reasons) == (
        "rolled_back", 11, ("it was stopped while train-model ran",)
    )  # fmt: skip


def test_a_release_that_was_promoted_before_the_stop_came_is_promoted(tmp_path: Path) -> None:
    told = with_summary(tmp_path, {"outcome": "promoted", "version": 2}, phase="Succeeded")
    seen = {**workflow(node("train-model", "Succeeded"), told), "spec": {"shutdown": "Stop"}}
    over = ended("m", TEMPLATE, seen, tmp_path, seconds=1)
    assert (over.outcome, over.exit_code, over.reasons) == ("promoted", 0, ())
