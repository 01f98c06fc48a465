"""Who serves next: the rules, one test each, and the laws over all states."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from fakes_serving import NAMESPACE, START
from hypothesis import given, reject
from hypothesis import strategies as st

from seatrial import route
from seatrial.errors import Frozen, InvalidInput, Superseded
from seatrial.route import RouteState
from seatrial.route.state import from_manifest, nothing

SOON = START + timedelta(minutes=5)
MODEL = "cart_abandonment"
NOTHING = nothing(MODEL)
SERVING = RouteState(model_name=MODEL, exists=True, champion=2, previous=1, weights={2: 100}, owner="r2", sequence=4)
TRIAL = SERVING.but(candidate=3, weights={2: 90, 3: 10}, owner="r3", watched_until=SOON)
FIRST = RouteState(model_name=MODEL, exists=True, candidate=1, owner="r1", watched_until=SOON)
FOREIGN = TRIAL.but(foreign=True, weights={2: 50, 3: 50})


def begin(state: RouteState, **changes: object) -> RouteState | None:
    asked = {"version": 3, "owner": "r3", "now": START, "watched_until": SOON, "against": 2, **changes}
    return route.begin(state, **asked)  # type: ignore[arg-type]


def test_a_first_release_is_reached_by_header_only() -> None:
    begun = begin(NOTHING, version=1, owner="r1", against=None)
    assert begun is not None
    assert (begun.exists, begun.candidate, begun.champion, begun.weights) == (True, 1, None, {})


def test_a_candidate_begins_at_weight_zero() -> None:
    begun = begin(SERVING)
    assert begun is not None
    assert (begun.candidate, begun.weights, begun.owner) == (3, {2: 100, 3: 0}, "r3")


def test_beginning_again_keeps_the_weight_and_renews_the_watch() -> None:
    later = begin(TRIAL, watched_until=SOON + timedelta(minutes=1))
    assert later is not None
    assert (later.weights, later.watched_until) == ({2: 90, 3: 10}, SOON + timedelta(minutes=1))


def test_beginning_what_already_serves_changes_nothing() -> None:
    assert begin(SERVING, version=2, owner="r2", against=1) is None


@pytest.mark.parametrize(("against", "version"), [(1, 3), (None, 3), (3, 4)])
def test_another_champion_than_the_one_judged_against_supersedes(against: int | None, version: int) -> None:
    with pytest.raises(Superseded, match="judged against"):
        begin(SERVING, against=against, version=version)


def test_a_champion_newer_than_the_candidate_supersedes() -> None:
    newer = SERVING.but(champion=7, weights={7: 100})
    with pytest.raises(Superseded, match="v7 serves"):
        begin(newer, against=7, version=3)


def test_a_newer_candidate_that_is_watched_supersedes() -> None:
    with pytest.raises(Superseded, match="v5 is on trial"):
        begin(TRIAL.but(candidate=5, weights={2: 90, 5: 10}), version=4, owner="r4")


def test_a_newer_candidate_that_nobody_watches_gives_way() -> None:
    begun = begin(TRIAL.but(candidate=5, weights={2: 90, 5: 10}), version=4, owner="r4", now=SOON)
    assert begun is not None
    assert begun.weights == {2: 100, 4: 0}


def test_an_older_candidate_of_another_release_gives_way_and_loses_its_traffic() -> None:
    begun = begin(TRIAL, version=4, owner="r4")
    assert begun is not None
    assert (begun.candidate, begun.weights, begun.owner) == (4, {2: 100, 4: 0}, "r4")


def test_the_same_version_under_another_owner_starts_at_zero_again() -> None:
    begun = begin(TRIAL, owner="redeploy")
    assert begun is not None
    assert (begun.weights, begun.owner) == ({2: 100, 3: 0}, "redeploy")


def test_a_shift_gives_the_champion_the_rest() -> None:
    shifted = route.shift(TRIAL, version=3, weight=25, owner="r3", watched_until=SOON)
    assert shifted is not None
    assert shifted.weights == {2: 75, 3: 25}


@pytest.mark.parametrize("weight", [-1, 101])
def test_a_weight_is_a_percentage(weight: int) -> None:
    with pytest.raises(InvalidInput, match="0 to 100"):
        route.shift(TRIAL, version=3, weight=weight, owner="r3", watched_until=SOON)


def test_a_first_release_cannot_share() -> None:
    with pytest.raises(InvalidInput, match="first release"):
        route.shift(FIRST, version=1, weight=10, owner="r1", watched_until=SOON)


@pytest.mark.parametrize("state", [TRIAL.but(owner="r9"), SERVING, TRIAL.but(candidate=4, weights={2: 90, 4: 10})])
def test_another_owner_or_a_lost_trial_supersedes(state: RouteState) -> None:
    with pytest.raises(Superseded):
        route.shift(state, version=3, weight=50, owner="r3", watched_until=SOON)
    with pytest.raises(Superseded):
        route.promote(state, version=3, owner="r3")


def test_promotion_keeps_the_champion_as_previous() -> None:
    promoted = route.promote(TRIAL, version=3, owner="r3")
    assert promoted is not None
    assert (promoted.champion, promoted.previous, promoted.candidate, promoted.weights) == (3, 2, None, {3: 100})


def test_promoting_a_first_release_makes_the_weighted_rule() -> None:
    promoted = route.promote(FIRST, version=1, owner="r1")
    assert promoted is not None
    assert (promoted.champion, promoted.previous, promoted.weights) == (1, None, {1: 100})


def test_anyone_may_take_a_candidate_out() -> None:
    back = route.go_back(TRIAL, owner="someone else")
    assert back is not None
    assert (back.weights, back.candidate, back.champion, back.owner) == ({2: 100}, None, 2, "someone else")


def test_going_back_from_a_first_release_removes_the_route() -> None:
    back = route.go_back(FIRST, owner="r1")
    assert back is not None
    assert not back.exists


def test_going_back_from_one_version_leaves_another_alone() -> None:
    assert route.go_back(TRIAL, owner="r3", version=4) is None


def test_rollback_serves_the_previous_version_and_goes_one_step_only() -> None:
    back = route.rollback(SERVING, owner="ann")
    assert back is not None
    assert (back.champion, back.previous, back.weights) == (1, None, {1: 100})
    with pytest.raises(InvalidInput, match="nothing to go back to"):
        route.rollback(back, owner="ann")


def test_rollback_during_a_trial_takes_the_candidate_out_and_keeps_the_champion() -> None:
    back = route.rollback(TRIAL, owner="ann")
    assert back is not None
    assert (back.champion, back.previous, back.weights) == (2, 1, {2: 100})


@pytest.mark.parametrize(
    ("state", "who"), [(NOTHING, "nobody serves; release a version$"), (SERVING.but(previous=None), "v2 serves and no")]
)
def test_rollback_with_nothing_to_go_back_to_is_wrong_input(state: RouteState, who: str) -> None:
    with pytest.raises(InvalidInput, match=f"nothing to go back to: {who}"):
        route.rollback(state, owner="ann")


def test_a_rollback_asked_twice_goes_back_once() -> None:
    back = route.rollback(SERVING, owner="ann", away_from=2)
    assert back is not None
    assert route.rollback(back, owner="ann", away_from=2) is None


def test_settle_takes_out_a_candidate_whose_watch_is_over() -> None:
    assert route.settle(TRIAL, now=SOON - timedelta(seconds=1)) is None
    back = route.settle(TRIAL, now=SOON)
    assert back is not None
    assert (back.weights, back.owner) == ({2: 100}, "settle")


def test_settle_of_a_release_takes_out_its_own_candidate_only() -> None:
    assert route.settle(TRIAL, now=SOON, owner="r9") is None
    back = route.settle(TRIAL, now=START, owner="r3")
    assert back is not None
    assert back.candidate is None


def test_settle_leaves_a_promoted_version_alone() -> None:
    assert route.settle(SERVING, now=SOON, owner="r2") is None


@pytest.mark.parametrize(
    "decide",
    [
        begin,
        lambda s: route.shift(s, version=3, weight=20, owner="r3", watched_until=SOON),
        lambda s: route.promote(s, version=3, owner="r3"),
        lambda s: route.go_back(s, owner="r3"),
        lambda s: route.settle(s, now=SOON),
    ],
    ids=["begin", "shift", "promote", "go_back", "settle"],
)
def test_a_route_changed_by_hand_freezes_automation(decide: Callable[[RouteState], RouteState | None]) -> None:
    with pytest.raises(Frozen, match="seatrial adopt cart_abandonment"):
        decide(FOREIGN)


def test_a_persons_rollback_works_on_a_route_changed_by_hand() -> None:
    back = route.rollback(FOREIGN, owner="ann")
    assert back is not None
    assert (back.foreign, back.weights, back.candidate) == (False, {2: 100}, None)


def test_rollback_restores_the_champion_when_only_the_weights_were_changed_by_hand() -> None:
    back = route.rollback(SERVING.but(previous=None, foreign=True, weights={2: 1, 9: 9}), owner="ann")
    assert back is not None
    assert (back.champion, back.weights, back.foreign) == (2, {2: 100}, False)


def test_adopting_a_split_keeps_it_under_the_persons_watch() -> None:
    adopted = route.adopt(FOREIGN.but(weights={2: 1, 3: 3}), owner="ann", watched_until=SOON, running={1, 2, 3, 4, 5})
    assert adopted is not None
    assert (adopted.weights, adopted.candidate, adopted.owner) == ({2: 25, 3: 75}, 3, "ann")


def test_a_previous_version_that_was_given_a_share_by_hand_is_still_the_way_back() -> None:
    shared = FOREIGN.but(previous=1, weights={1: 40, 2: 60})
    adopted = route.adopt(shared, owner="ann", watched_until=SOON, running={1, 2, 3, 4, 5})
    assert adopted is not None
    taken_out = route.rollback(adopted, owner="ann", away_from=1)
    assert taken_out is not None
    assert (taken_out.champion, taken_out.previous, taken_out.weights) == (2, 1, {2: 100})


def test_adopting_all_of_the_traffic_makes_a_champion_with_a_way_back() -> None:
    adopted = route.adopt(FOREIGN.but(weights={3: 100, 2: 0}), owner="ann", watched_until=SOON, running={1, 2, 3, 4, 5})
    assert adopted is not None
    assert (adopted.champion, adopted.previous, adopted.candidate, adopted.weights) == (3, 2, None, {3: 100})


@pytest.mark.parametrize("weights", [{}, {2: 0}, {2: 30, 3: 30, 4: 40}, {4: 50, 5: 50}])
def test_adopting_what_names_no_intended_pair_is_refused(weights: dict[int, int]) -> None:
    with pytest.raises(InvalidInput, match="cannot be adopted"):
        route.adopt(FOREIGN.but(weights=weights), owner="ann", watched_until=SOON, running={1, 2, 3, 4, 5})


@pytest.mark.parametrize("weights", [{3: 100}, {2: 50, 3: 50}])
def test_a_version_without_a_service_cannot_be_adopted(weights: dict[int, int]) -> None:
    with pytest.raises(InvalidInput, match="v3 has no service"):
        route.adopt(FOREIGN.but(weights=weights), owner="ann", watched_until=SOON, running={1, 2})


def test_a_champion_that_lost_its_service_is_no_way_back() -> None:
    adopted = route.adopt(FOREIGN.but(weights={3: 100}), owner="ann", watched_until=SOON, running={3})
    assert adopted is not None
    assert (adopted.champion, adopted.previous) == (3, None)


def test_a_lost_route_is_made_again_as_a_person_says() -> None:
    made = route.restore(NOTHING, champion=2, previous=1, owner="ann")
    assert (made.exists, made.champion, made.previous, made.weights, made.owner) == (True, 2, 1, {2: 100}, "ann")


@pytest.mark.parametrize("state", [SERVING, TRIAL, FIRST, FOREIGN])
def test_a_route_that_is_there_is_never_made_from_the_ledger(state: RouteState) -> None:
    with pytest.raises(InvalidInput, match="is the truth"):
        route.restore(state, champion=1, previous=None, owner="ann")


def test_adopting_a_route_of_ours_changes_nothing() -> None:
    assert route.adopt(TRIAL, owner="ann", watched_until=SOON, running={1, 2, 3, 4, 5}) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": {2: 90, 3: 20}},
        {"weights": {2: 90, 4: 10}},
        {"weights": {2: 110, 3: -10}},
        {"champion": 3},
        {"previous": 2},
        {"champion": None},
        {"exists": False},
    ],
    ids=str,
)
def test_a_state_of_ours_names_its_versions_and_sums_to_100(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"champion|weight|route"):
        TRIAL.but(**changes)


versions = st.integers(1, 6)


@st.composite
def states(draw: st.DrawFn) -> RouteState:
    """Any state that one of ours can write."""
    champion = draw(st.none() | versions)
    candidate = draw(versions.filter(lambda v: v != champion) if champion is None else st.none() | versions)
    candidate = None if candidate == champion else candidate
    previous = draw(st.none() | versions.filter(lambda v: v != champion)) if champion is not None else None
    share = draw(st.integers(0, 100)) if candidate is not None else 0
    weights = {} if champion is None else {champion: 100 - share}
    if champion is not None and candidate is not None:
        weights[candidate] = share
    return RouteState(
        model_name=MODEL,
        exists=True,
        champion=champion,
        candidate=candidate,
        previous=previous,
        weights=weights,
        owner=draw(st.sampled_from(["r3", "other"])),
        watched_until=draw(st.sampled_from([None, START - timedelta(1), SOON])),
        sequence=draw(st.integers(0, 9)),
        reason=draw(st.text(max_size=5).map(str.strip)),
    )


DECISIONS: dict[str, Callable[[RouteState, RouteState], RouteState | None]] = {
    "begin": lambda first, s: begin(s, version=6, against=first.champion),
    "shift": lambda first, s: route.shift(s, version=first.candidate or 1, weight=30, owner="r3", watched_until=SOON),
    "promote": lambda first, s: route.promote(s, version=first.candidate or first.champion or 1, owner="r3"),
    "go_back": lambda _, s: route.go_back(s, owner="me"),
    "rollback": lambda first, s: route.rollback(s, owner="me", away_from=first.candidate or first.champion),
    "settle": lambda _, s: route.settle(s, now=START),
    "settle own": lambda _, s: route.settle(s, now=START, owner="r3"),
}
"""Each asks what a caller asks who saw the first state, of the state given."""


@given(first=states() | st.just(NOTHING), name=st.sampled_from(sorted(DECISIONS)))
def test_a_decision_on_its_own_result_changes_nothing(first: RouteState, name: str) -> None:
    try:
        wanted = DECISIONS[name](first, first)
    except (InvalidInput, Superseded):
        reject()
    if wanted is not None:
        assert DECISIONS[name](first, wanted) is None


@given(state=states())
def test_reading_what_was_written_gives_the_same_state(state: RouteState) -> None:
    assert from_manifest(MODEL, state.manifest(NAMESPACE)) == state
