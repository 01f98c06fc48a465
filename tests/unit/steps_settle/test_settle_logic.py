"""How a release ended, read from its Workflow; what may be cleaned up."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from seatrial.errors import Unavailable
from seatrial.route import RouteState
from steps.settle_release import history
from steps.settle_release.history import Node
from steps.settle_release.logic import Trial, deciding, exit_codes, outcome_of, removable, version_of, why

NEW = {"outcome": "new", "version": "2"}
GATES = {name: {"decision": "pass"} for name in ("validate-data", "evaluate-model", "package-model")}
DEPLOYED = {"decision": "pass", "outcome": "deployed"}


def ran(**outputs: dict[str, str]) -> dict[str, Node]:
    names = {name.replace("_", "-"): given for name, given in outputs.items()}
    return {name: Node(template=name, phase="Succeeded", outputs=given) for name, given in names.items()}


def failed(name: str, code: int = 1) -> dict[str, Node]:
    return {name: Node(template=name, phase="Failed", exit_code=code, message=f"Error (exit code {code})")}


UP_TO_DEPLOY = {**ran(resolve_release=NEW, deploy_model=DEPLOYED), **ran(**GATES)}


@pytest.mark.parametrize(
    ("steps", "trial", "outcome"),
    [
        (ran(resolve_release={"outcome": "unchanged", "version": "1"}), Trial(), "unchanged"),
        ({**UP_TO_DEPLOY, **ran(run_canary={"decision": "pass", "outcome": "promoted"})}, Trial(), "promoted"),
        ({**UP_TO_DEPLOY, **failed("run-canary", 137)}, Trial(promoted=True, began=True), "promoted"),
        ({}, Trial(promoted=True, began=True), "promoted"),
        (ran(resolve_release=NEW, validate_data={"decision": "fail"}), Trial(), "refused"),
        (ran(resolve_release=NEW, validate_data={"decision": "inconclusive"}), Trial(), "refused"),
        (ran(resolve_release=NEW, evaluate_model={"decision": "fail"}), Trial(), "refused"),
        (ran(resolve_release=NEW, package_model={"decision": "fail"}), Trial(), "refused"),
        (ran(resolve_release=NEW, deploy_model={"decision": "fail", "outcome": "not_ready"}), Trial(), "rolled_back"),
        (ran(deploy_model={"decision": "inconclusive", "outcome": "superseded"}), Trial(), "superseded"),
        (ran(deploy_model=DEPLOYED, run_canary={"outcome": "superseded"}), Trial(began=True), "superseded"),
        (ran(deploy_model=DEPLOYED, run_canary={"decision": "fail"}), Trial(began=True), "rolled_back"),
        (ran(deploy_model=DEPLOYED, run_canary={"decision": "none"}), Trial(), "rolled_back"),
        ({**UP_TO_DEPLOY, **failed("run-canary", 137)}, Trial(began=True), "rolled_back"),
        (failed("deploy-model", 75), Trial(began=True), "rolled_back"),
        (failed("deploy-model", 76), Trial(), "failed"),
        (failed("resolve-release", 78), Trial(), "failed"),
        ({**ran(resolve_release=NEW), **failed("train-model")}, Trial(), "failed"),
        ({**ran(resolve_release=NEW), **failed("validate-data", 137)}, Trial(), "failed"),
        (UP_TO_DEPLOY, Trial(began=True), "rolled_back"),
        (UP_TO_DEPLOY, Trial(began=True, frozen=True), "failed"),
        (ran(resolve_release=NEW, validate_data={"decision": "none"}), Trial(), "failed"),
        (ran(resolve_release=NEW, validate_data={}), Trial(), "failed"),
        ({}, Trial(), "failed"),
    ],
)
def test_an_outcome_follows_from_steps_and_route(steps: dict[str, Node], trial: Trial, outcome: str) -> None:
    assert outcome_of(steps, trial) == outcome


def test_a_version_is_told_by_the_steps_and_none_is_of_an_unchanged_release() -> None:
    assert version_of(ran(resolve_release=NEW)) == 2
    assert version_of({"deploy-model": Node(template="deploy-model", phase="Failed", inputs={"version": "7"})}) == 7
    assert version_of(ran(resolve_release={"outcome": "unchanged", "version": "1"})) is None
    assert version_of(ran(resolve_release={"outcome": "none", "version": "0"})) is None


def test_the_first_step_that_stopped_it_gives_the_reason() -> None:
    steps = {**ran(resolve_release=NEW, validate_data={"decision": "fail"}), **failed("build-image")}
    node = deciding(steps)
    assert node is not None
    assert why(node, ["unique_ids: 3 ids twice"]) == ["validate-data: unique_ids: 3 ids twice"]
    assert why(node, []) == ["validate-data: fail"]


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ({"decision": "fail", "outcome": "not_ready", "reason": "0 of 1 copies"}, "not_ready: 0 of 1 copies"),
        ({"decision": "fail", "reason": "unique_ids: 3 twice"}, "unique_ids: 3 twice"),
        ({"decision": "fail", "outcome": "not_ready"}, "not_ready"),
        ({"decision": "inconclusive", "reason": ""}, "inconclusive"),
    ],
)
def test_without_a_verdict_the_step_says_it_itself(outputs: dict[str, str], reason: str) -> None:
    assert why(Node(template="deploy-model", phase="Succeeded", outputs=outputs), []) == [f"deploy-model: {reason}"]


def test_a_failed_step_is_named_with_its_exit_code() -> None:
    steps = {**ran(resolve_release=NEW), **failed("train-model", 78)}
    node = deciding(steps)
    assert node is not None
    assert why(node, []) == ["train-model: Failed (exit 78): Error (exit code 78)"]
    assert exit_codes(steps) == {"train-model": 78}


STATE = RouteState(
    model_name="tea", exists=True, champion=5, previous=3, candidate=6, weights={5: 90, 6: 10}, owner="x"
)


def test_who_serves_served_before_and_is_on_trial_stays() -> None:
    assert removable([3, 5, 6], STATE, own=6, ended=[3, 5, 6]) == []


def test_older_ones_and_those_whose_release_is_over_go_and_newer_ones_stay() -> None:
    assert removable([1, 2, 4, 7, 8], STATE, own=None, ended=[8]) == [1, 2, 4, 8]


def test_with_the_lock_held_nothing_is_just_starting() -> None:
    assert removable([1, 3, 5, 6, 7, 8], STATE, own=None, ended=[], alone=True) == [1, 7, 8]


def test_its_own_goes_when_nothing_refers_to_it() -> None:
    assert removable([7], STATE, own=7, ended=[]) == [7]


def test_without_a_champion_only_what_is_over_goes() -> None:
    first = RouteState(model_name="tea", exists=True, candidate=2, owner="x")
    assert removable([1, 2, 3], first, own=None, ended=[1]) == [1]


def node(template: str, phase: str, kind: str = "Pod", at: str = "1", **outputs: Any) -> dict[str, Any]:
    return {"templateName": template, "phase": phase, "type": kind, "finishedAt": at, "outputs": outputs}


def parameters(**values: str) -> list[dict[str, str]]:
    return [{"name": name.replace("_", "-"), "value": value} for name, value in values.items()]


def steps_of(*nodes: dict[str, Any]) -> dict[str, Node]:
    return history.steps({"status": {"nodes": {str(i): one for i, one in enumerate(nodes)}}})


def test_a_retry_node_speaks_for_its_attempts() -> None:
    found = steps_of(
        node("train-model", "Failed", at="1", exitCode="75"),
        node("train-model", "Succeeded", at="2", exitCode="0", parameters=parameters(run_id="x")),
        node("train-model", "Succeeded", "Retry", at="3", exitCode="0", parameters=parameters(run_id="x")),
    )["train-model"]
    assert (found.succeeded, found.outputs, found.exit_code) == (True, {"run-id": "x"}, 0)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("main: Error (exit code 78): the data lacks the label", "the data lacks the label"),
        ("main: OOMKilled (exit code 137)", "main: OOMKilled (exit code 137)"),
        ("", "No more retries left"),
    ],
)
def test_a_failed_step_says_why_by_its_last_attempt(said: str, message: str) -> None:
    over = {**node("train-model", "Failed", "Retry", at="4"), "message": "No more retries left"}
    attempts = [{**node("train-model", "Failed", at=str(at)), "message": said} for at in (2, 3)]
    assert steps_of(over, *attempts)["train-model"].message == message


def test_the_last_attempt_speaks_when_there_is_no_retry_node() -> None:
    found = steps_of(node("train-model", "Succeeded", at="2"), node("train-model", "Failed", at="1", exitCode="75"))[
        "train-model"
    ]
    assert found.succeeded


def test_defaults_of_a_failed_step_are_no_outputs() -> None:
    found = steps_of(node("deploy-model", "Failed", exitCode="1", parameters=parameters(decision="pass")))
    assert found["deploy-model"].outputs == {}


@pytest.mark.parametrize("phase", ["Skipped", "Omitted", "Pending"])
def test_a_step_that_did_not_run_is_not_there(phase: str) -> None:
    assert steps_of(node("run-canary", phase), node("run-canary", phase, "Skipped")) == {}


def test_dags_are_no_steps() -> None:
    assert steps_of(node("roll-out", "Failed", "DAG")) == {}


def test_packed_nodes_are_unpacked() -> None:
    packed = base64.b64encode(gzip.compress(json.dumps({"a": node("train-model", "Failed")}).encode())).decode()
    assert set(history.steps({"status": {"compressedNodes": packed}})) == {"train-model"}


@pytest.mark.parametrize("status", [{"compressedNodes": "AAAA"}, {"offloadNodeStatusVersion": "fnv:1"}])
def test_nodes_that_cannot_be_read_are_not_taken_for_none(status: dict[str, str]) -> None:
    with pytest.raises(Unavailable):
        history.steps({"status": status})
