"""settle_release: however it ended, put right what is left and say what happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes_rollout import HOLDOUT, MODEL, NAME, Rollout, image_of, killed
from fakes_settling import DEPLOYED, World, workflow

from seatrial import papers, release, route
from seatrial.errors import Unavailable
from seatrial.release import EXIT_CODES
from steps import _runtime
from steps.settle_release.__main__ import _exit_code
from steps.settle_release.contract import STEP, Inputs, Outputs


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def summary(outputs: Outputs) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(outputs.summary.read_text())
    return found


def back_at_v1(world: World) -> None:
    state = world.router.read(MODEL)
    assert (state.champion, state.candidate, state.weights) == (1, None, {1: 100})
    assert world.versions() == ["tea-orders-v1"]


def test_a_canary_that_died_is_taken_back_and_read_back(world: World) -> None:
    world.happened(deploy_model=DEPLOYED, run_canary=137)
    outputs = world.settle()
    assert outputs.outcome == "rolled_back"
    back_at_v1(world)
    found = summary(outputs)
    assert found["read_back"] == {"v1": 20}
    assert found["deleted_services"] == ["tea-orders-v2"]
    assert found["exit_codes"] == {"run-canary": 137}
    assert found["reasons"] == ["run-canary: Failed (exit 137): it broke"]
    assert (found["version"], found["champion"], found["image"]) == (2, 1, image_of(2))
    assert world.actions() == ["begin", "shift", "settle"]


def test_what_was_promoted_stays_with_its_way_back(world: World) -> None:
    world.promote(2)
    world.happened(deploy_model=DEPLOYED, run_canary={"decision": "pass", "outcome": "promoted"})
    outputs = world.settle(workflow_status="Succeeded")
    assert outputs.outcome == "promoted"
    assert world.router.read(MODEL).weights == {2: 100}
    assert world.versions() == ["tea-orders-v1", "tea-orders-v2"]
    assert (summary(outputs)["reasons"], summary(outputs)["bundle"]) == ([], world.bundles[2])


def test_a_canary_that_died_after_it_promoted_has_promoted(world: World) -> None:
    world.promote(2)
    world.happened(deploy_model=DEPLOYED, run_canary=143)
    assert world.settle().outcome == "promoted"
    assert world.router.read(MODEL).champion == 2


def test_promotion_is_remembered_when_the_next_release_has_begun_already(world: World) -> None:
    world.promote(2)
    world.package(3, champion=2)
    world.deploy(3)
    world.happened(deploy_model=DEPLOYED, run_canary=143)
    assert world.settle().outcome == "promoted"
    assert world.router.read(MODEL).candidate == 3


def test_a_person_who_rolled_back_after_the_promotion_is_not_overruled(world: World) -> None:
    world.promote(2)
    world.router.change(MODEL, lambda s: route.rollback(s, owner="ann"), action="rollback", reason="slow")
    world.happened(deploy_model=DEPLOYED, run_canary={"decision": "pass", "outcome": "promoted"})
    assert world.settle().outcome == "promoted"
    back_at_v1(world)


def test_another_releases_candidate_is_left_alone(world: World) -> None:
    world.happened(resolve_release=78)
    outputs = world.settle(9)
    assert outputs.outcome == "failed"
    assert world.router.read(MODEL).weights == {1: 90, 2: 10}
    assert world.versions() == ["tea-orders-v1", "tea-orders-v2"]


def test_a_superseded_release_takes_its_own_service_and_nothing_else(world: World) -> None:
    world.package(3, champion=1)
    world.deploy(3)
    world.happened(deploy_model=DEPLOYED, run_canary={"decision": "inconclusive", "outcome": "superseded"})
    outputs = world.settle()
    assert outputs.outcome == "superseded"
    assert world.versions() == ["tea-orders-v1", "tea-orders-v3"]
    assert world.router.read(MODEL).candidate == 3


def test_a_first_release_that_is_taken_back_leaves_no_route(tmp_path: Path) -> None:
    first = World.__new__(World)
    Rollout.__init__(first, tmp_path)
    first.package(1, champion=None)
    first.reserve(1)
    first.deploy(1)
    first.runs_of = {"run": workflow(1, deploy_model=DEPLOYED, run_canary=1)}
    outputs = first.settle(1)
    assert outputs.outcome == "rolled_back"
    assert (first.route(), first.versions()) == (None, [])
    assert summary(outputs)["read_back"] == {"404": 20}


def test_a_removed_route_whose_removal_was_not_recorded_is_recorded(tmp_path: Path) -> None:
    first = World.__new__(World)
    Rollout.__init__(first, tmp_path)
    first.package(1, champion=None)
    first.deploy(1)
    first.routes.objects.clear()
    first.runs_of = {"run": workflow(1, deploy_model=DEPLOYED, run_canary=1)}
    assert first.settle(1).outcome == "rolled_back"
    assert first.actions() == ["begin", "go_back"]


def test_a_refused_release_names_the_check(world: World) -> None:
    checks = ("unique_ids",)
    envelope = world.signed(
        "validate_data", {"data": HOLDOUT}, release=world._release(5), required=checks, decision="fail"
    )
    world.store.objects["argo/verdict"] = envelope
    run_of = workflow(2, validate_data={"decision": "fail"})
    node = run_of["status"]["nodes"]["validate-data"]
    node["outputs"]["artifacts"] = [{"name": "verdict", "s3": {"key": "argo/verdict"}}]
    world.runs_of = {"run": run_of}
    outputs = world.settle(5)
    assert outputs.outcome == "refused"
    assert summary(outputs)["reasons"] == ["validate-data: unique_ids: as the test wants it"]


def test_a_verdict_that_cannot_be_read_leaves_the_decision(world: World) -> None:
    world.happened(evaluate_model={"decision": "inconclusive"})
    assert summary(world.settle(5))["reasons"] == ["evaluate-model: inconclusive"]


@pytest.mark.parametrize(
    ("of", "reason"),
    [(2, "run-canary: unique_ids: as the test wants it"), (1, "run-canary: rolled_back")],
    ids=["its own", "an earlier release's, beside newer papers"],
)
def test_the_canarys_reasons_are_read_from_its_own_verdict_among_the_papers(world: World, of: int, reason: str) -> None:
    envelope = world.signed("run_canary", {"bundle": HOLDOUT}, release=world._release(of), decision="fail")
    world.store.objects[papers.key(world.bundles[2], "run_canary.dsse.json")] = envelope
    run_of = workflow(2, deploy_model=DEPLOYED, run_canary={"decision": "fail", "outcome": "rolled_back"})
    told = [{"name": "bundle-digest", "value": world.bundles[2]}]
    run_of["status"]["nodes"]["run-canary"]["inputs"] = {"parameters": told}
    world.runs_of = {"run": run_of}
    assert summary(world.settle())["reasons"] == [reason]


def test_nothing_to_release_is_unchanged_and_names_what_serves(world: World) -> None:
    world.promote(2)
    before = world.route()
    world.happened(resolve_release={"outcome": "unchanged", "version": "2"})
    outputs = world.settle(9, workflow_status="Succeeded")
    assert outputs.outcome == "unchanged"
    assert world.route() == before
    found = summary(outputs)
    assert (found["champion"], found["bundle"]) == (2, world.bundles[2])


@pytest.mark.parametrize("runs", [None, {}])
def test_without_the_workflow_it_goes_back_and_says_so(world: World, runs: dict[str, Any] | None) -> None:
    world.runs_of = runs
    outputs = world.settle()
    assert outputs.outcome == "rolled_back"
    back_at_v1(world)
    assert "run" in summary(outputs)["notes"][0]


def test_without_the_workflow_a_promotion_is_still_one(world: World) -> None:
    world.promote(2)
    world.runs_of = None
    assert world.settle().outcome == "promoted"
    assert world.router.read(MODEL).champion == 2


def test_without_the_store_it_goes_back_and_says_what_is_left(world: World) -> None:
    world.happened(deploy_model=DEPLOYED, run_canary=137)
    world.store.away = True
    outputs = world.settle()
    assert outputs.outcome == "rolled_back"
    assert world.router.read(MODEL).weights == {1: 100}
    assert any("services of tea_orders were left" in note for note in summary(outputs)["notes"])
    world.store.away = False
    assert world.settle().outcome == "rolled_back"
    back_at_v1(world)
    assert world.actions() == ["begin", "shift", "settle"]


def test_without_the_gateway_it_goes_back_and_deletes_nothing(world: World) -> None:
    world.happened(deploy_model=DEPLOYED, run_canary=137)
    world.predictions.dead = True
    outputs = world.settle()
    assert outputs.outcome == "rolled_back"
    assert world.router.read(MODEL).weights == {1: 100}
    assert world.versions() == ["tea-orders-v1", "tea-orders-v2"]
    assert any("v1 was to answer" in note for note in summary(outputs)["notes"])


def test_without_the_api_it_is_tried_again(world: World) -> None:
    def away() -> None:
        raise Unavailable("the API server is away")

    world.happened(deploy_model=DEPLOYED, run_canary=137)
    world.routes.before_write = [away] * 20
    with pytest.raises(Unavailable):
        world.settle()


def test_a_route_changed_by_hand_is_left_with_the_service_that_it_names(world: World) -> None:
    world.routes.by_hand(NAME, {"tea-orders-v1-predictor": 50, "tea-orders-v2-predictor": 50})
    world.happened(deploy_model=DEPLOYED, run_canary=78)
    outputs = world.settle()
    assert outputs.outcome == "failed"
    assert world.versions() == ["tea-orders-v1", "tea-orders-v2"]
    assert world.router.read(MODEL).weights == {1: 50, 2: 50}
    assert any("seatrial adopt tea_orders" in note for note in summary(outputs)["notes"])


def test_services_of_older_versions_go_and_a_newer_one_that_starts_stays(world: World) -> None:
    world.promote(2)
    for version in (4, 5):
        world.services.put(MODEL, version)
        world.reserve(version)
    world.store.objects[release.outcome_key(MODEL, "uid-5")] = b"{}"
    world.package(3, champion=2)
    world.deploy(3)
    world.promote(3)
    world.happened(deploy_model=DEPLOYED, run_canary={"decision": "pass", "outcome": "promoted"})
    outputs = world.settle(3)
    assert world.versions() == ["tea-orders-v2", "tea-orders-v3", "tea-orders-v4"]
    assert summary(outputs)["deleted_services"] == ["tea-orders-v1", "tea-orders-v5"]


def test_rolling_out_what_serves_already_is_unchanged(world: World) -> None:
    world.promote(2)
    world.happened(deploy_model={"decision": "none", "outcome": "unchanged", "reason": "v2 serves already"})
    assert world.settle(2, release_id="uid-again").outcome == "unchanged"
    assert world.router.read(MODEL).weights == {2: 100}
    assert world.versions() == ["tea-orders-v1", "tea-orders-v2"]


def test_where_the_route_was_lost_the_services_that_could_serve_again_stay(world: World) -> None:
    world.promote(2)
    world.routes.objects.clear()
    world.store.objects[release.outcome_key(MODEL, "uid-1")] = b"{}"
    world.happened(resolve_release=78)
    outputs = world.settle(9)
    assert outputs.outcome == "failed"
    assert world.versions() == ["tea-orders-v1", "tea-orders-v2"]


def test_the_outcome_is_kept_in_the_store(world: World) -> None:
    world.happened(deploy_model=DEPLOYED, run_canary=137)
    world.settle()
    assert world.store.json(release.outcome_key(MODEL, "uid-2"))["outcome"] == "rolled_back"


@pytest.mark.parametrize("name", ["../x", "A b", "$(id)", "{{x}}", "t" * 31, ""])
def test_a_name_that_is_none_touches_nothing(world: World, name: str) -> None:
    before = (dict(world.store.objects), world.route(), world.versions())
    world.happened(resolve_release=78)
    outputs = world.settle(9, model_name=name)
    assert outputs.outcome == "failed"
    assert summary(outputs)["exit_codes"] == {"resolve-release": 78}
    assert (world.store.objects, world.route(), world.versions()) == before


@pytest.mark.parametrize("last", ["promoted", "on trial"])
def test_killed_after_any_effect_a_rerun_ends_right(tmp_path: Path, last: str) -> None:
    """Walks through all effects: dies after the first, after the second … until a run survives."""
    kills = 0
    while True:
        (tmp_path / str(kills)).mkdir()
        world = World(tmp_path / str(kills))
        if last == "promoted":
            world.promote(2)
        world.happened(deploy_model=DEPLOYED, run_canary=137)
        world.deadly.survive = len(world.deadly.effects) + kills
        died = killed(world.settle)
        world.deadly.survive = None
        outputs = world.settle()
        if last == "promoted":
            assert outputs.outcome == "promoted"
            assert world.router.read(MODEL).weights == {2: 100}
        else:
            assert outputs.outcome == "rolled_back"
            back_at_v1(world)
        assert world.store.json(release.outcome_key(MODEL, "uid-2"))["outcome"] == outputs.outcome
        assert world.actions()[:2] == ["begin", "shift"]
        if not died:
            break
        kills += 1
    assert kills == (1 if last == "promoted" else 4)


@pytest.mark.parametrize("outcome", [*EXIT_CODES, "none"])
def test_it_is_red_unless_promoted_or_unchanged(outcome: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_IO", str(tmp_path))

    def settled(_inputs: Inputs, scratch: Path) -> Outputs:
        (scratch / "summary.json").write_text("{}")
        return Outputs(outcome=outcome, summary=scratch / "summary.json")

    names = ("model-name", "release-id", "workflow-name", "workflow-status", "reason")
    arguments = [text for name in names for text in (f"--{name}", "x")]
    with pytest.raises(SystemExit) as left:
        _runtime.main("settle_release", STEP, Inputs, settled, arguments, exit_code=_exit_code)
    assert (left.value.code == 0) == (outcome in {"promoted", "unchanged"})
    assert (tmp_path / "out/params/outcome").read_text() == outcome
    assert left.value.code not in {75, 137, 143}
