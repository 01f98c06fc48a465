"""deploy_model: the version runs behind the gateway, at weight 0, and answers right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes_release as made
import pytest
from fakes_rollout import MODEL, NAME, SPEC, Rollout, image_of, killed
from fakes_serving import always, ready

from seatrial import bundle, ledger, release, route, verdict
from seatrial.errors import Frozen, IntegrityError, InvalidInput, Unavailable
from seatrial.ports import Answer
from seatrial.release import Served
from seatrial.verdict import Gate
from steps import _required
from steps.deploy_model.contract import Outputs


@pytest.fixture
def rollout(tmp_path: Path) -> Rollout:
    """v1 serves; v2 was judged against it."""
    made_here = Rollout(tmp_path)
    made_here.package(1, champion=None)
    made_here.serve(1)
    made_here.package(2, champion=1)
    return made_here


@pytest.fixture
def first(tmp_path: Path) -> Rollout:
    """Nobody serves; v1 was judged alone."""
    made_here = Rollout(tmp_path)
    made_here.package(1, champion=None)
    return made_here


def record(outputs: Outputs) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(outputs.record.read_text())
    return found


def test_a_candidate_is_up_at_weight_zero_and_the_champion_has_all_traffic(rollout: Rollout) -> None:
    outputs = rollout.deploy(2)
    assert (outputs.decision, outputs.outcome, outputs.service) == ("pass", "deployed", "tea-orders-v2")
    state = rollout.router.read(MODEL)
    assert (state.champion, state.candidate, state.weights, state.owner) == (1, 2, {1: 100, 2: 0}, "uid-2")
    assert record(outputs)["read_back"]["answers"] == {"v1": 20}


def test_a_first_candidate_is_reached_by_header_only(first: Rollout) -> None:
    outputs = first.deploy(1)
    assert outputs.outcome == "deployed"
    assert first.router.read(MODEL).weights == {}
    assert record(outputs)["read_back"]["answers"] == {"404": 20}


def test_the_store_knows_the_version_before_the_route_does(rollout: Rollout) -> None:
    rollout.deploy(2)
    served = Served.model_validate_json(rollout.store.objects[release.served_key(MODEL, 2)])
    assert (served.bundle, served.image) == (rollout.bundles[2], image_of(2))
    effects = rollout.deadly.effects
    assert effects.index("write models/tea_orders/served/00000002.json") < effects.index("patch route tea-orders")


def test_the_ledger_says_that_it_began(rollout: Rollout) -> None:
    rollout.deploy(2)
    assert rollout.store.json(f"{ledger.prefix(MODEL)}00000001.json")["action"] == "begin"


def test_a_gateway_that_follows_late_is_waited_for(rollout: Rollout) -> None:
    rollout.predictions.delay = 30
    assert rollout.deploy(2).outcome == "deployed"


def test_the_cluster_may_want_more_replicas_than_the_spec(rollout: Rollout) -> None:
    assert rollout.deploy(2, rollout.ports(replicas_min=3)).outcome == "deployed"
    assert rollout.services.objects["tea-orders-v2"]["spec"]["predictor"]["minReplicas"] == 3


def gone(rollout: Rollout, outputs: Outputs, outcome: str) -> None:
    """Nothing is left of v2, and v1 has all traffic."""
    assert (outputs.decision, outputs.outcome) == ("fail", outcome)
    assert sorted(rollout.services.objects) == ["tea-orders-v1"]
    state = rollout.router.read(MODEL)
    assert (state.champion, state.candidate, state.weights) == (1, None, {1: 100})


def test_what_is_never_ready_goes_before_any_route_is_touched(rollout: Rollout) -> None:
    before = rollout.route()
    no_pod = {"type": "PredictorReady", "status": "False", "reason": "MinimumReplicasUnavailable"}
    rollout.services.status = always({"observedGeneration": 1, "conditions": [no_pod]})
    outputs = rollout.deploy(2)
    gone(rollout, outputs, "not_ready")
    assert rollout.route() == before
    waited = record(outputs)["waited"]
    assert "MinimumReplicasUnavailable" in waited["reason"]
    assert "MinimumReplicasUnavailable" in outputs.reason
    assert waited["seconds"] == SPEC.serving.ready_within_s


def test_what_cannot_load_fails_early(rollout: Rollout) -> None:
    why = {"reason": "ModelLoadFailed", "exitCode": 1}
    failed = {"transitionStatus": "BlockedByFailedLoad", "lastFailureInfo": why}
    rollout.services.status = always({"modelStatus": failed})
    outputs = rollout.deploy(2)
    gone(rollout, outputs, "not_ready")
    assert record(outputs)["waited"]["seconds"] == 0


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=200, version=2, outputs={"probability": [0.9]}),
        Answer(status=200, version=1, outputs={"probability": [0.0]}),
        Answer(status=500, version=None, error="boom"),
        Answer(status=0, version=None, error="read timeout"),
    ],
    ids=["wrong", "another version's", "error", "none"],
)
def test_wrong_answers_over_the_wire_take_the_candidate_out(rollout: Rollout, answer: Answer) -> None:
    rollout.predictions.wrong[2] = answer
    outputs = rollout.deploy(2)
    gone(rollout, outputs, "wrong_answers")
    assert len(record(outputs)["golden"]["faults"]) == 5
    assert outputs.reason == record(outputs)["golden"]["faults"][0]


def test_a_first_candidate_with_wrong_answers_leaves_no_route(first: Rollout) -> None:
    first.predictions.wrong[1] = Answer(status=500, version=None)
    assert first.deploy(1).outcome == "wrong_answers"
    assert first.route() is None
    assert first.services.objects == {}


def test_a_dead_gateway_is_nobodys_fault(rollout: Rollout) -> None:
    rollout.predictions.dead = True
    with pytest.raises(Unavailable, match="gateway"):
        rollout.deploy(2)
    assert "tea-orders-v2" in rollout.services.objects


def test_a_champion_that_does_not_answer_is_not_deployed_beside(rollout: Rollout) -> None:
    rollout.predictions.wrong[1] = Answer(status=503, version=None)
    with pytest.raises(Unavailable, match="v1 was to answer"):
        rollout.deploy(2)


def test_another_champion_than_the_one_judged_against_supersedes(rollout: Rollout) -> None:
    rollout.package(3, champion=1)
    rollout.serve(3, previous=1)
    outputs = rollout.deploy(2)
    assert (outputs.decision, outputs.outcome) == ("inconclusive", "superseded")
    assert sorted(rollout.services.objects) == ["tea-orders-v1", "tea-orders-v3"]
    assert rollout.router.read(MODEL).champion == 3


def test_judged_alone_while_somebody_serves_is_superseded(rollout: Rollout) -> None:
    rollout.package(4, champion=None)
    assert rollout.deploy(4).outcome == "superseded"


def test_a_champion_that_changes_while_it_starts_supersedes(rollout: Rollout) -> None:
    rollout.package(3, champion=1)

    def promoted_meanwhile(manifest: Any, look: int) -> Any:
        if look == 2:
            rollout.serve(3, previous=1)
        return ready(manifest) if look > 2 else {}

    rollout.services.status = promoted_meanwhile
    assert rollout.deploy(2).outcome == "superseded"
    assert sorted(rollout.services.objects) == ["tea-orders-v1", "tea-orders-v3"]


def test_what_serves_already_stays_as_it_is(rollout: Rollout) -> None:
    rollout.deploy(2)
    rollout.router.change(
        MODEL, lambda s: route.promote(s, version=2, owner="uid-2"), action="promote", reason="passed"
    )
    before = rollout.router.read(MODEL)
    assert rollout.deploy(2).outcome == "deployed"
    assert rollout.router.read(MODEL) == before


def test_rolling_out_alone_what_serves_already_makes_it_whole_and_tries_nothing(rollout: Rollout) -> None:
    rollout.deploy(2)
    rollout.router.change(
        MODEL, lambda s: route.promote(s, version=2, owner="uid-2"), action="promote", reason="passed"
    )
    before = rollout.router.read(MODEL)
    rollout.services.delete("tea-orders-v2")
    outputs = rollout.deploy(2, release_id="uid-again")
    assert (outputs.outcome, outputs.decision) == ("unchanged", "none")
    assert "tea-orders-v2" in rollout.services.objects
    assert rollout.router.read(MODEL) == before


def test_a_champion_that_fails_a_redeploy_is_not_deleted(rollout: Rollout) -> None:
    rollout.deploy(2)
    rollout.router.change(
        MODEL, lambda s: route.promote(s, version=2, owner="uid-2"), action="promote", reason="passed"
    )
    rollout.services.status = always({})
    assert rollout.deploy(2).outcome == "not_ready"
    assert "tea-orders-v2" in rollout.services.objects
    assert rollout.router.read(MODEL).weights == {2: 100}


def test_a_roll_out_submitted_alone_deploys_an_earlier_releases_bundle(rollout: Rollout) -> None:
    assert rollout.deploy(2, release_id="roll-out-alone").outcome == "deployed"
    assert rollout.router.read(MODEL).owner == "roll-out-alone"


def test_a_route_changed_by_hand_stops_it_before_any_effect(rollout: Rollout) -> None:
    rollout.routes.by_hand(NAME, {"tea-orders-v1-predictor": 1, "tea-orders-v9-predictor": 1})
    with pytest.raises(Frozen):
        rollout.deploy(2)
    assert rollout.deadly.effects == [e for e in rollout.deadly.effects if "bundles/" in e]


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({bundle.IMAGE_LABEL: made.ZERO}, f"says that it holds bundle {made.ZERO}"),
        ({}, f"has no label {bundle.IMAGE_LABEL}"),
    ],
)
def test_an_image_that_holds_another_bundle_is_refused_before_any_effect(
    rollout: Rollout, labels: dict[str, str], says: str
) -> None:
    before, effects = json.dumps(rollout.route()), [*rollout.deadly.effects]
    rollout.images.kept[image_of(2)] = labels
    with pytest.raises(IntegrityError, match=says):
        rollout.deploy(2)
    assert (json.dumps(rollout.route()), rollout.deadly.effects) == (before, effects)


def test_an_image_that_may_not_be_read_is_deployed_and_the_record_says_so(rollout: Rollout) -> None:
    del rollout.images.kept[image_of(2)]
    outputs = rollout.deploy(2)
    assert outputs.outcome == "deployed"
    assert json.loads(outputs.record.read_bytes())["image_label"] == {"compared": False}


def test_an_image_without_digest_is_wrong_input(rollout: Rollout) -> None:
    with pytest.raises(InvalidInput, match="image"):
        rollout.deploy(2, image="localhost/seatrial/tea-orders@")


def papers(rollout: Rollout) -> str:
    return bundle.papers_prefix(rollout.bundles[2])


def verdict_of(gate: Gate, judged: dict[str, str] | None = None, **changes: Any) -> Callable[[Rollout], None]:
    """Exchange a verdict of v2 for another one, which differs from it only in what is given."""

    def do(rollout: Rollout) -> None:
        place = f"{papers(rollout)}/{gate}.dsse.json"
        good = verdict.verify(rollout.store.objects[place], [made.KEY.public_key()])
        record = rollout._release(changes.pop("version", 2), 1)
        given = {"required": good.required, **changes}
        rollout.store.objects[place] = rollout.signed(gate, {**good.judged, **(judged or {})}, release=record, **given)

    return do


def another_model(rollout: Rollout) -> None:
    """Verdicts that hang together, about a model that is not the one in the bundle."""
    verdict_of("evaluate_model", {"model": made.ZERO})(rollout)
    verdict_of("package_model", {"model": made.ZERO})(rollout)


def without(gate: Gate) -> Callable[[Rollout], None]:
    """A verdict that was not asked for the first check that the spec lists."""
    return verdict_of(gate, required=_required.of(SPEC, champion=True)[gate][1:])


def lose(name: str) -> Callable[[Rollout], None]:
    def do(rollout: Rollout) -> None:
        del rollout.store.objects[f"{papers(rollout)}/{name}"]

    return do


def alter(key: str, old: bytes, new: bytes) -> Callable[[Rollout], None]:
    def do(rollout: Rollout) -> None:
        full = key.format(papers=papers(rollout), bundle=bundle.prefix(rollout.bundles[2]))
        assert old in rollout.store.objects[full]
        rollout.store.objects[full] = rollout.store.objects[full].replace(old, new)

    return do


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lose("validate_data.dsse.json"), "no verdict of validate_data"),
        (lose("evaluate_model.dsse.json"), "no verdict of evaluate_model"),
        (lose("package_model.dsse.json"), "no verdict of package_model"),
        (lose("spec.json"), "lack spec.json"),
        (lose("release.json"), "lack release.json"),
        (lose("golden.jsonl"), "lack golden.jsonl"),
        (lose("replay.jsonl"), "lack replay.jsonl"),
        (alter("{papers}/spec.json", b'"ready_within_s":120.0', b'"ready_within_s":121.0'), "spec.json .*was altered"),
        (alter("{papers}/spec.json", b'"owner":"tea team"', b'"owner":"sea team"'), "spec.json .*was altered"),
        (alter("{papers}/release.json", b'"reason":"a test"', b'"reason":"a tess"'), "release.json .*was altered"),
        (alter("{papers}/golden.jsonl", b"[0.125]", b"[0.126]"), "golden.jsonl .*was altered"),
        (alter("{papers}/replay.jsonl", b"[0.125]", b"[0.126]"), "replay.jsonl .*was altered"),
        (alter("{papers}/package_model.dsse.json", b'"sig":"', b'"sig":"AAAA'), "no valid signature"),
        (alter("{bundle}/manifest.json", b'"model/model.onnx":"sha256:', b'"model/other":"sha256:'), "in the place of"),
        (verdict_of("evaluate_model", key=made.FOREIGN_KEY), "no valid signature"),
        (verdict_of("validate_data", decision="inconclusive"), "validate_data must have passed"),
        (verdict_of("package_model", decision="fail"), "package_model must have passed"),
        (verdict_of("validate_data", {"holdout_rows": made.ZERO}), "holdout_rows"),
        (verdict_of("evaluate_model", {"model": made.ZERO}), "judged model"),
        (verdict_of("evaluate_model", {"champion": made.ZERO}), "compared with"),
        (verdict_of("package_model", {"bundle": made.ZERO}), "judged bundle"),
        (verdict_of("package_model", {"golden.jsonl": made.ZERO}), "golden.jsonl .*was altered"),
        (verdict_of("validate_data", version=1), "must be of model, release"),
        (another_model, "is not the one that was judged"),
        (without("validate_data"), "without the checks .*both_classes"),
        (without("evaluate_model"), "without the checks .*answers_match"),
        (without("package_model"), "without the checks .*boots"),
    ],
)
def test_what_is_missing_altered_or_foreign_is_never_deployed(
    rollout: Rollout, spoil: Callable[[Rollout], None], words: str
) -> None:
    spoil(rollout)
    before = (dict(rollout.services.objects), rollout.route())
    with pytest.raises(IntegrityError, match=words):
        rollout.deploy(2)
    assert (rollout.services.objects, rollout.route()) == before


def test_another_version_than_the_one_judged_is_not_deployed(rollout: Rollout) -> None:
    rollout.bundles[3] = rollout.bundles[2]
    with pytest.raises(IntegrityError, match="judged v2"):
        rollout.deploy(3)


def test_verdicts_of_another_release_are_foreign(rollout: Rollout) -> None:
    rollout.package(5, champion=1)
    with pytest.raises(IntegrityError, match="release uid-2"):
        rollout.deploy(2, release_id="uid-5")


@pytest.mark.parametrize("outcome", ["deployed", "wrong_answers", "not_ready"])
@pytest.mark.parametrize("start", ["first", "rollout"])
def test_killed_after_any_effect_a_rerun_ends_right(
    start: str, outcome: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Walks through all effects: dies after the first, after the second … until a run survives."""
    kills = 0
    while True:
        world = _world(tmp_path / f"kill{kills}", start, outcome)
        version = 1 if start == "first" else 2
        before = len(world.deadly.effects)
        world.deadly.survive = before + kills
        died = killed(lambda world=world, version=version: world.deploy(version))  # type: ignore[misc]
        world.deadly.survive = None
        assert world.deploy(version).outcome == outcome
        _ends_right(world, version, outcome)
        if not died:
            break
        kills += 1
    assert kills >= (2 if outcome == "not_ready" else 4)


def _world(tmp_path: Path, start: str, outcome: str) -> Rollout:
    world = Rollout(tmp_path)
    tmp_path.mkdir()
    world.package(1, champion=None)
    if start == "rollout":
        world.serve(1)
        world.package(2, champion=1)
    if outcome == "wrong_answers":
        world.predictions.wrong[1 if start == "first" else 2] = Answer(status=500, version=None)
    if outcome == "not_ready":
        failed = {"transitionStatus": "InvalidSpec"}
        world.services.status = always({"modelStatus": failed})
    return world


def _ends_right(world: Rollout, version: int, outcome: str) -> None:
    state = world.router.read(MODEL)
    kept = [f"tea-orders-v{v}" for v in range(1, version)]
    if outcome == "deployed":
        assert (state.candidate, state.owner) == (version, f"uid-{version}")
        assert sorted(world.services.objects) == [*kept, f"tea-orders-v{version}"]
    else:
        assert state.candidate is None
        assert sorted(world.services.objects) == kept
    assert state.weights.get(version, 0) == 0
    entries = [ledger.Entry.model_validate_json(world.store.objects[k]) for k in world.store.keys(ledger.prefix(MODEL))]
    ledger.verify(entries)
