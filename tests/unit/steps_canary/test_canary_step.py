"""run_canary as a whole, on a fake gateway and a fake clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes_release as made
import pytest
from fakes_canary import MODEL, PLAN, RELEASE, World
from fakes_serving import Killed

from seatrial.canary import record
from seatrial.canary.record import Ending, Look, Opening
from seatrial.errors import Frozen, IntegrityError, StepError, Unavailable
from seatrial.ports import Answer
from seatrial.route import promote
from seatrial.verdict import Check, Gate, Verdict, verify
from steps import _required
from steps.run_canary.contract import Outputs


def check(found: Verdict, name: str) -> Check:
    return next(check for check in found.checks if check.name == name)


def entries(outputs: Outputs) -> tuple[Opening, list[Look], Ending]:
    found = record.read(outputs.record.read_bytes())
    assert isinstance(found[0], Opening)
    assert isinstance(found[-1], Ending)
    return found[0], [one for one in found if isinstance(one, Look)], found[-1]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_good_candidate_is_promoted_and_read_back(world: World) -> None:
    outputs = world.run()
    found = world.verdict(outputs)
    assert (outputs.decision, outputs.outcome, found.reasons) == ("pass", "promoted", ())
    state = world.state()
    assert (state.champion, state.previous, state.candidate, state.weights) == (2, 1, None, {2: 100})
    assert world.actions()[-5:] == ["shift", "shift", "shift", "shift", "promote"]
    assert set(found.required) == {"errors", "golden_answers", "read_back", "split"}
    assert check(found, "errors").evidence["sources"] == "replay"
    assert check(found, "read_back").evidence == {"v2": 20}
    assert world.store.objects[world.paper("run_canary.dsse.json")] == outputs.verdict.read_bytes()
    assert not world.replay.running


def test_the_record_is_what_the_verdict_judged_and_gives_the_same_decision_again(world: World) -> None:
    outputs = world.run()
    opening, looks, ending = entries(outputs)
    assert record.recompute(opening, looks).decision == ending.decision == "pass"
    forged = [*looks[:-1], looks[-1].model_copy(update={"decision": "hold"})]
    with pytest.raises(IntegrityError, match="hold; pass follows"):
        record.recompute(opening, forged)


def test_the_interval_after_a_change_of_weight_is_not_counted(world: World) -> None:
    _, looks, _ = entries(world.run())
    shares = {
        look.weight: [one.counts.share for one in looks if one.counts and one.weight == look.weight] for look in looks
    }
    assert set(shares) == {10, 50, 100}
    for weight, seen in shares.items():
        assert seen == pytest.approx([weight / 100] * len(seen), abs=0.02)


def test_errors_of_the_candidate_take_it_back_at_the_first_step(world: World) -> None:
    world.errors.update({1: 0.01, 2: 0.2})
    outputs = world.run()
    found = world.verdict(outputs)
    assert (outputs.decision, outputs.outcome) == ("fail", "rolled_back")
    assert "canary requests failed" in found.reasons[0]
    assert check(found, "read_back").evidence == {"v1": 20}
    state = world.state()
    assert (state.champion, state.candidate, state.weights) == (1, None, {1: 100})
    _, looks, _ = entries(outputs)
    assert {look.weight for look in looks} == {10}
    assert len(looks) < 10


def test_a_candidate_as_bad_as_the_champion_passes_by_ratio(world: World) -> None:
    world.errors.update({1: 0.05, 2: 0.05})
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("pass", "promoted")


def test_harm_that_sets_in_late_is_caught_at_100_percent(world: World) -> None:
    outputs_weights = []

    def breaks() -> None:
        world.errors[2] = 0.3
        outputs_weights.append(world.state().weights)

    while_watching = lambda: breaks() if world.state().weights.get(2) == 100 else later()  # noqa: E731

    def later() -> None:
        world.clock.script.append((world.clock.seconds + 1, while_watching))

    later()
    outputs = world.run()
    assert outputs_weights == [{1: 0, 2: 100}]
    assert (outputs.decision, outputs.outcome) == ("fail", "rolled_back")
    assert world.state().weights == {1: 100}


def test_no_traffic_at_all_is_inconclusive_and_goes_back(tmp_path: Path) -> None:
    world = World(tmp_path, plan=PLAN.model_copy(update={"replay_per_s": 0.0}))
    outputs = world.run()
    found = world.verdict(outputs)
    assert (outputs.decision, outputs.outcome) == ("inconclusive", "rolled_back")
    assert "no counted request reached the canary" in found.reasons[0]
    assert world.clock.seconds == pytest.approx(60, abs=10)
    assert world.state().weights == {1: 100}


def test_where_replay_may_not_promote_it_goes_by_header_and_clients_are_waited_for(world: World) -> None:
    world.promote_on_replay = False
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("inconclusive", "rolled_back")
    assert world.replay.arm == "canary"
    assert world.replay.per_s == 20
    assert check(world.verdict(outputs), "errors").evidence["sources"] == "nobody"


def test_where_replay_may_not_promote_clients_do(world: World) -> None:
    world.promote_on_replay = False
    world.traffic.clients_per_s = 200
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("pass", "promoted")
    assert check(world.verdict(outputs), "errors").evidence["sources"] == "clients"


def test_the_verdict_names_both_sources(world: World) -> None:
    world.traffic.clients_per_s = 100
    assert check(world.verdict(world.run()), "errors").evidence["sources"] == "clients and replay"


def test_a_wrong_golden_answer_goes_back_before_any_weight(world: World) -> None:
    world.answers_wrong()
    outputs = world.run()
    found = world.verdict(outputs)
    assert (outputs.decision, outputs.outcome) == ("fail", "rolled_back")
    assert "request r0 was answered wrong twice" in found.reasons[0]
    assert world.traffic.scrape(MODEL).versions.get(2) is None


def test_one_wrong_golden_answer_that_is_right_when_repeated_is_forgiven(world: World) -> None:
    ask, asked = world.predictions.ask, []

    def once_wrong(model_name: str, request: bytes, *, arm: str | None = None) -> Answer:
        asked.append(request)
        found = ask(model_name, request, arm=arm)
        return found if len(asked) != 5 else Answer(status=500, version=None, error="a hiccup")

    world.predictions.ask = once_wrong  # type: ignore[method-assign]
    assert world.run().outcome == "promoted"


def test_a_wrong_replayed_answer_that_is_confirmed_by_header_stops_the_ramp(world: World) -> None:
    def turns_wrong() -> None:
        world.replay.suspects = ("r9",)
        world.answers_wrong()

    world.clock.script.append((8.0, turns_wrong))
    outputs = world.run()
    found = world.verdict(outputs)
    assert (outputs.decision, outputs.outcome) == ("fail", "rolled_back")
    assert "r9" in check(found, "replay_answers").reason
    assert check(found, "errors").decision == "inconclusive"


def test_a_suspect_that_is_right_by_header_does_not_stop_the_ramp(world: World) -> None:
    world.replay.suspects = ("r9", "not-one-of-ours")
    assert world.run().outcome == "promoted"


def test_counts_that_are_away_for_a_while_only_hold(world: World) -> None:
    world.clock.script += [
        (6.0, lambda: setattr(world.traffic, "away", True)),
        (20.0, lambda: setattr(world.traffic, "away", False)),
    ]
    outputs = world.run()
    assert outputs.outcome == "promoted"
    _, looks, _ = entries(outputs)
    assert any(look.dropped == "the gateway's counts cannot be read" for look in looks)
    assert any(look.dropped.startswith("a gap") for look in looks)


def test_counts_that_stay_away_are_inconclusive(world: World) -> None:
    world.clock.script.append((6.0, lambda: setattr(world.traffic, "away", True)))
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("inconclusive", "rolled_back")
    assert world.state().weights == {1: 100}


def test_an_interval_with_a_counter_reset_is_dropped(world: World) -> None:
    world.clock.script.append((6.0, world.traffic.reset))
    outputs = world.run()
    _, looks, _ = entries(outputs)
    assert [look.dropped for look in looks if look.dropped] == ["the gateway's counters were reset"]
    assert outputs.outcome == "promoted"


def test_a_gateway_that_splits_otherwise_than_asked_is_inconclusive(world: World) -> None:
    world.traffic.share = 0.2
    outputs = world.run()
    found = world.verdict(outputs)
    assert (outputs.decision, outputs.outcome) == ("inconclusive", "rolled_back")
    assert check(found, "split").decision == "inconclusive"
    assert "asked for were 10.00%" in check(found, "errors").reason


def test_a_gateway_that_follows_late_is_waited_for(world: World) -> None:
    world.traffic.share = 0.0
    world.clock.script.append((10.0, lambda: setattr(world.traffic, "share", None)))
    outputs = world.run()
    _, looks, _ = entries(outputs)
    assert next(look.dropped for look in looks if look.dropped) == "the gateway does not follow yet"
    assert outputs.outcome == "promoted"
    assert check(world.verdict(outputs), "split").decision == "pass"


@pytest.mark.parametrize(("before", "turns_at_s"), [(0.0, 10.5), (0.1, 28.5)], ids=["first step", "second step"])
def test_the_interval_in_which_a_late_gateway_turns_is_not_counted(
    world: World, before: float, turns_at_s: float
) -> None:
    """Of the second step too: until then the gateway splits by the first one's weight."""
    world.traffic.share = before
    world.clock.script.append((turns_at_s, lambda: setattr(world.traffic, "share", None)))
    outputs = world.run()
    _, looks, _ = entries(outputs)
    dropped = [look.dropped for look in looks if look.dropped]
    assert dropped[-1] == "the gateway has just followed"
    assert set(dropped[:-1]) == {"the gateway does not follow yet"}
    assert outputs.outcome == "promoted"
    assert check(world.verdict(outputs), "split").decision == "pass"


def test_a_gateway_that_never_follows_is_inconclusive(world: World) -> None:
    world.traffic.share = 0.0
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("inconclusive", "rolled_back")
    assert "the gateway gave the canary 0.00%" in check(world.verdict(outputs), "errors").reason
    assert world.state().weights == {1: 100}


def test_somebody_elses_route_is_not_touched(world: World) -> None:
    world.clock.script.append((8.0, world.somebody_rolls_back))
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("inconclusive", "superseded")
    assert world.state().owner == "ann"
    assert world.actions()[-1] == "begin"
    assert not world.replay.running
    assert "superseded" in " ".join(world.verdict(outputs).reasons)


def test_a_release_that_lost_its_place_before_is_superseded(world: World) -> None:
    world.somebody_rolls_back()
    assert world.run().outcome == "superseded"


def test_weights_changed_by_hand_freeze_the_canary(world: World) -> None:
    def by_hand() -> None:
        world.routes.by_hand("tea-orders", {"tea-orders-v1-predictor": 100, "tea-orders-v2-predictor": 0})

    world.clock.script.append((8.0, by_hand))
    with pytest.raises(Frozen):
        world.run()
    assert world.state().foreign
    assert not world.replay.running


def test_the_route_says_that_somebody_watches_all_the_time(tmp_path: Path) -> None:
    steps = (PLAN.steps[0].model_copy(update={"min_s": 700.0, "max_s": 900.0}),)
    world = World(tmp_path, plan=PLAN.model_copy(update={"steps": steps, "interval_s": 10.0}))
    left = []

    def look() -> None:
        until = world.state().watched_until
        if until is not None:
            left.append((until - world.clock.now()).total_seconds())
            world.clock.script.append((world.clock.seconds + 7, look))

    look()
    assert world.run().outcome == "promoted"
    assert min(left[2:]) > 100
    assert world.actions().count("shift") < 12


def test_a_first_release_is_judged_by_header_and_gets_all_traffic(tmp_path: Path) -> None:
    world = World(tmp_path, champion=False)
    outputs = world.run()
    found = world.verdict(outputs)
    assert (outputs.decision, outputs.outcome) == ("pass", "promoted")
    assert world.replay.arm == "canary"
    assert "split" not in found.required
    assert check(found, "errors").evidence["sources"] == "replay by header"
    state = world.state()
    assert (state.champion, state.previous, state.weights) == (2, None, {2: 100})


def test_a_first_release_over_the_absolute_limit_loses_its_route(tmp_path: Path) -> None:
    world = World(tmp_path, champion=False)
    world.errors[2] = 0.2
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("fail", "rolled_back")
    assert world.routes.objects == {}
    assert check(world.verdict(outputs), "read_back").evidence == {"404": 20}


def test_a_first_release_needs_no_replay_in_its_plan(tmp_path: Path) -> None:
    world = World(tmp_path, champion=False, plan=PLAN.model_copy(update={"replay_per_s": 0.0}))
    assert world.run().outcome == "promoted"


@pytest.mark.parametrize("gate", ["validate_data", "evaluate_model", "package_model"])
def test_a_missing_verdict_is_an_integrity_error_and_nothing_happens(world: World, gate: str) -> None:
    del world.store.objects[world.paper(f"{gate}.dsse.json")]
    before = world.state()
    with pytest.raises(IntegrityError, match=gate):
        world.run()
    assert world.state() == before


def verdict_of(gate: Gate, judged: dict[str, str] | None = None, **changes: Any) -> Callable[[World], None]:
    """Exchange a verdict for another one, which differs from it only in what is given."""

    def do(world: World) -> None:
        place = world.paper(f"{gate}.dsse.json")
        good = verify(world.store.objects[place], [made.KEY.public_key()])
        given = {"required": good.required, **changes}
        world.store.objects[place] = made.signed(world.case, gate, {**good.judged, **(judged or {})}, **given)

    return do


def without(gate: Gate) -> Callable[[World], None]:
    """A verdict that was not asked for the first check that the spec lists."""

    def do(world: World) -> None:
        verdict_of(gate, required=_required.of(world.case.spec, champion=True)[gate][1:])(world)

    return do


def alter(name: str, old: bytes, new: bytes) -> Callable[[World], None]:
    def do(world: World) -> None:
        place = world.paper(name)
        assert old in world.store.objects[place]
        world.store.objects[place] = world.store.objects[place].replace(old, new)

    return do


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (verdict_of("package_model", key=made.FOREIGN_KEY), "no valid signature"),
        (verdict_of("package_model", decision="fail"), "package_model must have passed"),
        (verdict_of("package_model", {"bundle": made.ZERO}), "judged bundle"),
        (without("validate_data"), "without the checks .*both_classes"),
        (without("evaluate_model"), "without the checks .*answers_match"),
        (without("package_model"), "without the checks .*boots"),
        (alter("spec.json", b'"harmless_rate":0.01', b'"harmless_rate":0.04'), "spec.json .*was altered"),
        (alter("release.json", b'"version":2', b'"version":3'), "release.json .*was altered"),
        (alter("golden.jsonl", b"[0.025]", b"[0.026]"), "golden.jsonl .*was altered"),
        (alter("replay.jsonl", b"[0.025]", b"[0.026]"), "replay.jsonl .*was altered"),
    ],
)
def test_what_is_altered_foreign_or_asked_for_less_is_given_no_traffic(
    world: World, spoil: Callable[[World], None], words: str
) -> None:
    spoil(world)
    before = world.state()
    with pytest.raises(IntegrityError, match=words):
        world.run()
    assert world.state() == before


@pytest.mark.parametrize("lost", ["the papers", "the store"])
def test_what_had_traffic_when_its_attempt_died_is_taken_out_if_it_cannot_be_believed_again(
    tmp_path: Path, lost: str
) -> None:
    world = World(tmp_path)
    world.clock.script.append((8.0, lambda: setattr(world.deadly, "survive", 0)))
    with pytest.raises(Killed):
        world.run("first")
    world.replay.running = False
    assert world.state().weights[2] > 0
    if lost == "the papers":
        alter("golden.jsonl", b"[0.025]", b"[0.026]")(world)
    world.store.away = lost == "the store"
    with pytest.raises(StepError):
        world.run("second")
    assert (world.state().champion, world.state().candidate, world.state().weights) == (1, None, {1: 100})


def test_a_store_that_is_away_before_there_was_traffic_costs_an_attempt_and_no_more(world: World) -> None:
    world.store.away = True
    with pytest.raises(Unavailable):
        world.run("first")
    world.store.away = False
    assert world.run("second").outcome == "promoted"


def test_a_kept_record_whose_counts_do_not_show_a_pass_promotes_nothing(world: World) -> None:
    world.run("first")
    place = world.paper("run_canary.record.jsonl")
    lines = world.store.objects[place].splitlines(keepends=True)
    world.store.objects[place] = b"".join([*lines[:2], lines[-1]])
    with pytest.raises(IntegrityError, match="says pass; from its counts follows hold"):
        world.run("second")


def test_a_record_and_a_verdict_of_an_earlier_release_promote_nothing(tmp_path: Path) -> None:
    """A release with the same bundle finds the papers of the one before beside its own."""
    earlier, world = World(tmp_path / "earlier"), World(tmp_path / "now")
    earlier.run()
    for name in ("run_canary.record.jsonl", "run_canary.dsse.json"):
        kept = earlier.store.objects[earlier.paper(name)]
        world.store.objects[world.paper(name)] = kept.replace(RELEASE.encode(), b"uid-1")
    world._change(lambda state: promote(state, version=2, owner=RELEASE))
    with pytest.raises(IntegrityError, match="no record of release uid-2"):
        world.run()


def test_a_version_deployed_from_another_bundle_is_an_integrity_error(world: World) -> None:
    key = "models/tea_orders/served/00000002.json"
    served = json.loads(world.store.objects[key])
    world.store.objects[key] = json.dumps({**served, "bundle": made.ZERO}).encode()
    with pytest.raises(IntegrityError, match="on trial is"):
        world.run()


def test_going_back_does_not_wait_for_the_store(world: World) -> None:
    world.errors[2] = 0.5
    world.clock.script.append((4.0, lambda: setattr(world.store, "away", True)))
    outputs = world.run()
    assert (outputs.decision, outputs.outcome) == ("fail", "rolled_back")
    assert world.state().weights == {1: 100}


def test_without_a_store_nothing_is_promoted(world: World) -> None:
    world.clock.script.append((4.0, lambda: setattr(world.store, "away", True)))
    with pytest.raises(Unavailable):
        world.run()
    assert (world.state().champion, world.state().candidate) == (1, None)


def test_a_bug_in_the_ramp_takes_the_candidate_out_first(world: World) -> None:
    world.replay.so_far = lambda: 1 / 0  # type: ignore[assignment,return-value]
    with pytest.raises(ZeroDivisionError):
        world.run()
    assert (world.state().champion, world.state().candidate) == (1, None)


@pytest.mark.parametrize("errors", [0.0, 0.4])
@pytest.mark.parametrize("champion", [True, False])
def test_whenever_it_is_killed_the_next_attempt_ends_well(tmp_path: Path, errors: float, champion: bool) -> None:  # noqa: FBT001
    survive = 0
    while True:
        world = World(tmp_path / str(survive), champion=champion, survive=survive)
        world.errors[2] = errors
        try:
            world.run("first")
        except Killed:
            world.replay.running = False
        else:
            break
        outputs = world.run("second")
        state = world.state()
        if errors:
            assert outputs.outcome == "rolled_back"
            assert (state.champion, state.candidate) == (1 if champion else None, None)
        else:
            assert (outputs.outcome, state.champion, state.candidate) == ("promoted", 2, None)
            assert outputs.decision == "pass"
        survive += 1
    assert survive >= 5


def test_a_promotion_without_a_record_is_an_integrity_error(world: World) -> None:
    world.router.change(MODEL, lambda s: promote(s, version=2, owner=RELEASE), action="promote", reason="by mistake")
    with pytest.raises(IntegrityError, match="no record"):
        world.run()


def test_the_report_draws_weights_and_evidence(world: World) -> None:
    page = world.run().report.read_text()
    assert page.count("<svg") == 2
    assert "run_canary passed" in page
