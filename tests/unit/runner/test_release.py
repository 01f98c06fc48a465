"""The committed release template, run with stand-ins for the steps: the ways in which a release ends."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes_runner import Stage, phases

from seatrial.app import runner
from seatrial.errors import InvalidInput

RELEASE = yaml.safe_load((Path(__file__).resolve().parents[3] / "workflow_templates/release.yaml").read_text())
ASKED = {"MODEL_NAME": "carts", "DATA_URI": "file:///rows.csv", "REASON": 'it\'s; $(id) "new"', "REVISION": ""}
IMAGE = f"localhost/seatrial/carts@sha256:{'1' * 64}"
BUNDLE = f"sha256:{'b' * 64}"
SAID = {
    "resolve-release": {"outcome": "new", "version": "3", "pod-spec-patch": '{"a": "b"}'},
    "validate-data": {"decision": "pass"},
    "train-model": {"run-id": "r"},
    "evaluate-model": {"decision": "pass"},
    "package-model": {
        "decision": "pass",
        "bundle-digest": BUNDLE,
        "repository": "localhost/seatrial/carts",
        "tag": "t1",
    },
    "build-image": {"digest": f"sha256:{'1' * 64}"},
    "deploy-model": {"decision": "pass", "outcome": "deployed", "service": "carts-v3"},
    "run-canary": {"decision": "pass", "outcome": "promoted"},
    "settle-release": {"outcome": "promoted"},
}


def template() -> dict[str, Any]:
    """The release, with backoffs that a test can wait for and a play for the steps that name no environment."""
    made = copy.deepcopy(RELEASE)
    for each in made["spec"]["templates"]:
        if "container" in each:
            each["retryStrategy"]["backoff"]["duration"] = "20ms"
            each["container"].setdefault("envFrom", []).append({"configMapRef": {"name": "play"}})
    return made  # type: ignore[no-any-return]


def acts(**changed: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What every step writes when all goes well; `changed` by package name."""
    play = {}
    for each in RELEASE["spec"]["templates"]:
        if "container" in each:
            artifacts = each.get("outputs", {}).get("artifacts", [])
            files = {
                a["name"]: f"{each['name']}/{a['name']}" if "archive" in a else {"in": a["name"]} for a in artifacts
            }
            play[each["name"]] = [{"params": SAID[each["name"]], "files": files}]
    for name, script in changed.items():
        kebab = name.replace("_", "-")
        play[kebab] = [{**play[kebab][0], **act} for act in script]
    return play


def released(tmp_path: Path, **changed: list[dict[str, Any]]) -> tuple[Stage, dict[str, Any]]:
    stage = Stage(tmp_path, acts(**changed))
    return stage, stage.run(template(), parameters=ASKED)


def flags(seen: dict[str, Any]) -> dict[str, str]:
    return dict(zip(seen["args"][::2], seen["args"][1::2], strict=True))


def test_promoted(tmp_path: Path) -> None:
    stage, finished = released(tmp_path)
    assert finished["status"]["phase"] == "Succeeded"
    assert set(phases(finished).values()) == {"Succeeded"}
    uid, name = finished["metadata"]["uid"], finished["metadata"]["name"]
    assert flags(stage.seen("resolve-release")) == {
        "--model-name": "carts",
        "--revision": "",
        "--data-uri": "file:///rows.csv",
        "--reason": ASKED["REASON"],
        "--release-id": uid,
    }
    assert flags(stage.seen("deploy-model")) == {
        "--model-name": "carts",
        "--version": "3",
        "--release-id": uid,
        "--image": IMAGE,
        "--bundle-digest": BUNDLE,
        "--reason": ASKED["REASON"],
    }
    assert flags(stage.seen("settle-release")) == {
        "--model-name": "carts",
        "--release-id": uid,
        "--workflow-name": name,
        "--workflow-status": "Succeeded",
        "--reason": ASKED["REASON"],
    }


def test_each_file_comes_from_the_step_that_made_it(tmp_path: Path) -> None:
    stage, _ = released(tmp_path)
    given = stage.seen("package-model")["inputs"]
    assert given["data-verdict"] == "validate-data/verdict"
    assert given["evaluation-verdict"] == "evaluate-model/verdict"
    assert given["training-record"] == "train-model/record"
    assert given["model/in"] == "model"
    assert stage.seen("build-image")["inputs"] == {"context": "package-model/context"}
    assert sorted(stage.seen("train-model")["inputs"]) == ["release", "source/in", "train-rows"]


def test_the_builder_gets_kanikos_command_line(tmp_path: Path) -> None:
    stage, _ = released(tmp_path)
    args = stage.seen("build-image")["args"]
    assert "--destination=localhost/seatrial/carts:t1" in args
    assert "--context=tar:///io/in/context" in args


@pytest.mark.parametrize("said", ["fail", "inconclusive", "none", "", "PASS", "pass "])
@pytest.mark.parametrize("gate", ["validate_data", "evaluate_model", "package_model"])
def test_only_pass_goes_on_and_the_exit_handler_makes_a_refusal_red(tmp_path: Path, gate: str, said: str) -> None:
    stage, finished = released(tmp_path, **{gate: [{"params": {"decision": said}}]}, settle_release=[{"exit": 10}])
    assert finished["status"]["phase"] == "Failed"
    seen = phases(finished)
    assert seen["release" if "release" in seen else finished["metadata"]["name"]] == "Succeeded"
    assert seen["roll-out"] == "Skipped"
    assert stage.attempts("deploy-model") == stage.attempts("build-image") == 0
    assert flags(stage.seen("settle-release"))["--workflow-status"] == "Succeeded"
    assert stage.attempts("settle-release") == 1


def test_unchanged_does_nothing_and_is_green(tmp_path: Path) -> None:
    stage, finished = released(tmp_path, resolve_release=[{"params": {"outcome": "unchanged", "version": "2"}}])
    assert finished["status"]["phase"] == "Succeeded"
    assert stage.attempts("validate-data") == 0
    assert phases(finished)["validate-data"] == "Skipped"
    assert {phases(finished)[name] for name in ("train-model", "build-image")} == {"Omitted"}


@pytest.mark.parametrize(("step", "code"), [("resolve_release", 78), ("train_model", 1), ("build_image", 1)])
def test_a_crash_is_not_tried_again_and_nothing_is_rolled_out(tmp_path: Path, step: str, code: int) -> None:
    stage, finished = released(tmp_path, **{step: [{"exit": code}]}, settle_release=[{"exit": 1}])
    assert finished["status"]["phase"] == "Failed"
    assert stage.attempts(step.replace("_", "-")) == 1
    assert stage.attempts("deploy-model") == 0
    assert phases(finished)["roll-out"] == "Omitted"
    assert flags(stage.seen("settle-release"))["--workflow-status"] == "Failed"


@pytest.mark.parametrize("act", [{"exit": 75}, {"kill": 9}, {"kill": 15}])
def test_what_is_away_is_tried_again(tmp_path: Path, act: dict[str, Any]) -> None:
    stage, finished = released(tmp_path, train_model=[act, {}])
    assert finished["status"]["phase"] == "Succeeded"
    assert stage.attempts("train-model") == 2


def test_a_deployment_that_is_not_ready_gets_no_traffic(tmp_path: Path) -> None:
    stage, finished = released(tmp_path, deploy_model=[{"params": {"decision": "fail"}}], settle_release=[{"exit": 11}])
    assert finished["status"]["phase"] == "Failed"
    assert phases(finished)["run-canary"] == "Skipped"
    assert stage.attempts("run-canary") == 0


def test_roll_out_starts_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, acts())
    given = {"MODEL_NAME": "carts", "version": "3", "image": IMAGE, "bundle-digest": BUNDLE}
    finished = stage.run(template(), parameters=given, entrypoint="roll-out")
    assert finished["status"]["phase"] == "Succeeded"
    assert finished["spec"]["entrypoint"] == "roll-out"
    assert stage.attempts("resolve-release") == 0
    assert flags(stage.seen("deploy-model"))["--image"] == IMAGE
    assert stage.attempts("settle-release") == 1


def test_without_its_environment_nothing_starts(tmp_path: Path) -> None:
    stage = Stage(tmp_path, acts())
    arguments = stage.arguments(template(), parameters=ASKED)
    del arguments["environment"]["seatrial-signing-key"]
    with pytest.raises(InvalidInput, match="there is no seatrial-signing-key here"):
        runner.run(template(), **arguments)
    assert stage.attempts("resolve-release") == 0
