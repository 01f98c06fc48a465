"""The one writer: conflicts, lost answers, foreign edits, the ledger beside it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fakes_serving import NAMESPACE, START, FakeClock, MemoryRoutes, MemoryStore

from seatrial import ledger, route
from seatrial.errors import Conflict, Frozen, InvalidInput, Superseded, Unavailable
from seatrial.ledger import Book
from seatrial.objects import HTTPRoute
from seatrial.route import Router, RouteState

SOON = START + timedelta(minutes=5)
MODEL, NAME = "cart_abandonment", "cart-abandonment"


class World:
    """A router, what it writes to and what it says."""

    def __init__(self) -> None:
        self.routes, self.store, self.clock = MemoryRoutes(), MemoryStore(), FakeClock()
        self.book = Book(self.store, self.clock)
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.router = Router(
            self.routes,
            self.clock,
            namespace=NAMESPACE,
            book=self.book,
            say=lambda what, **facts: self.said.append((what, facts)),
        )

    def begin(self, version: int, owner: str, against: int | None) -> RouteState:
        return self.router.change(
            MODEL,
            lambda s: route.begin(s, version=version, owner=owner, now=START, watched_until=SOON, against=against),
            action="begin",
            reason=f"release {owner}",
        )

    def shift(self, version: int, weight: int, owner: str) -> RouteState:
        return self.router.change(
            MODEL,
            lambda s: route.shift(s, version=version, weight=weight, owner=owner, watched_until=SOON),
            action="shift",
            reason=f"release {owner}",
        )

    def promote(self, version: int, owner: str) -> RouteState:
        return self.router.change(
            MODEL, lambda s: route.promote(s, version=version, owner=owner), action="promote", reason=f"release {owner}"
        )

    def go_back(self, owner: str) -> RouteState:
        return self.router.change(MODEL, lambda s: route.go_back(s, owner=owner), action="go_back", reason="errors")

    def actions(self) -> list[str]:
        entries = self.book.entries(MODEL)
        ledger.verify(entries)
        return [entry.action for entry in entries]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def trial(world: World) -> World:
    """v1 serves, v2 is on trial at 10 %."""
    world.begin(1, "r1", None)
    world.promote(1, "r1")
    world.begin(2, "r2", 1)
    world.shift(2, 10, "r2")
    return world


def backends(world: World) -> list[list[tuple[str, int]]]:
    manifest = HTTPRoute.model_validate(world.routes.objects[NAME])
    return [[(b.name, b.weight) for b in rule.backend_refs] for rule in manifest.spec.rules]


def test_a_trial_has_the_header_rule_first_and_both_versions_in_the_weighted_rule(trial: World) -> None:
    assert backends(trial) == [
        [("cart-abandonment-v2-predictor", 1)],
        [("cart-abandonment-v1-predictor", 90), ("cart-abandonment-v2-predictor", 10)],
    ]


def test_the_route_says_who_why_and_what_we_wrote(trial: World) -> None:
    annotations = trial.routes.objects[NAME]["metadata"]["annotations"]
    assert {
        key.removeprefix("seatrial.dev/"): value
        for key, value in annotations.items()
        if key != "seatrial.dev/watched-until"
    } == {
        "champion": "1",
        "previous": "",
        "candidate": "2",
        "owner": "r2",
        "ledger-sequence": "4",
        "weights": "1=90,2=10",
        "action": "shift",
        "reason": "release r2",
    }


def test_each_change_is_recorded_at_its_sequence(trial: World) -> None:
    trial.promote(2, "r2")
    assert trial.actions() == ["begin", "promote", "begin", "shift", "promote"]
    last = trial.book.entries(MODEL)[-1]
    assert (last.sequence, last.champion, last.weights, last.by) == (5, 2, {"2": 100}, "r2")


def test_nothing_to_do_writes_nothing(trial: World) -> None:
    before = trial.routes.objects[NAME]["metadata"]["resourceVersion"]
    assert trial.shift(2, 10, "r2").weights == {1: 90, 2: 10}
    assert trial.routes.objects[NAME]["metadata"]["resourceVersion"] == before


def test_after_a_conflict_the_decision_is_made_anew(trial: World) -> None:
    trial.routes.before_write = [lambda: _ann_goes_back(trial.routes)]
    with pytest.raises(Superseded, match="ann wrote last"):
        trial.promote(2, "r2")
    assert trial.router.read(MODEL).champion == 1


def _ann_goes_back(routes: MemoryRoutes) -> None:
    router = Router(routes, FakeClock(), namespace=NAMESPACE)
    router.change(MODEL, lambda s: route.go_back(s, owner="ann"), action="go_back", reason="by hand")


def touch(world: World) -> Callable[[], None]:
    def somebody_sets_a_label() -> None:
        world.routes._keep(NAME, world.routes.objects[NAME])

    return somebody_sets_a_label


def test_a_conflict_over_something_else_is_tried_again(trial: World) -> None:
    trial.routes.before_write = [touch(trial)] * 3
    assert trial.shift(2, 50, "r2").weights == {1: 50, 2: 50}


def test_endless_conflicts_end_as_a_conflict(trial: World) -> None:
    trial.routes.before_write = [touch(trial)] * 50
    with pytest.raises(Conflict, match="8 tries"):
        trial.shift(2, 50, "r2")
    assert trial.router.read(MODEL).weights == {1: 90, 2: 10}


def away() -> None:
    raise Unavailable("the API is away")


def test_an_api_that_comes_back_in_time_is_waited_for(trial: World) -> None:
    trial.routes.before_write = [away] * 4
    assert trial.go_back("r2").weights == {1: 100}


def test_an_api_that_stays_away_is_unavailable(trial: World) -> None:
    trial.routes.before_write = [away] * 50
    with pytest.raises(Unavailable, match="the API is away"):
        trial.go_back("r2")


@pytest.mark.parametrize("lost", [1, 2])
def test_a_write_whose_answer_got_lost_is_not_done_twice(trial: World, lost: int) -> None:
    trial.promote(2, "r2")
    trial.routes.lose_answers = lost
    back = trial.router.change(MODEL, lambda s: route.rollback(s, owner="ann"), action="rollback", reason="slow")
    assert (back.champion, back.previous, back.sequence) == (1, None, 6)
    assert trial.actions()[-1] == "rollback"


def test_a_removal_whose_answer_got_lost_is_recorded(world: World) -> None:
    world.begin(1, "r1", None)
    world.routes.lose_answers = 1
    assert not world.go_back("r1").exists
    assert world.actions() == ["begin", "go_back"]


def test_going_back_from_a_first_release_removes_the_route(world: World) -> None:
    world.begin(1, "r1", None)
    assert not world.go_back("r1").exists
    assert world.routes.objects == {}


def test_the_ledger_goes_on_after_the_route_was_removed(world: World) -> None:
    world.begin(1, "r1", None)
    world.go_back("r1")
    assert world.begin(2, "r2", None).sequence == 3
    assert world.actions() == ["begin", "go_back", "begin"]


@pytest.mark.parametrize(
    "weights",
    [
        {"cart-abandonment-v1-predictor": 50, "cart-abandonment-v2-predictor": 50},
        {"cart-abandonment-v1-predictor": 90, "somebody-elses": 10},
        {"cart-abandonment-v1-predictor": 90},
        {"cart-abandonment-v1-predictor": 90, "cart-abandonment-v2-predictor": 10, "cart-abandonment-v9-predictor": 1},
    ],
)
def test_weights_that_nobody_of_ours_wrote_freeze_the_model(trial: World, weights: dict[str, int]) -> None:
    trial.routes.by_hand(NAME, weights)
    with pytest.raises(Frozen):
        trial.shift(2, 50, "r2")
    with pytest.raises(Frozen):
        trial.go_back("r2")
    assert {b["name"]: b["weight"] for b in trial.routes.objects[NAME]["spec"]["rules"][-1]["backendRefs"]} == weights


def test_a_filter_that_nobody_of_ours_wrote_freezes_the_model(trial: World) -> None:
    trial.routes.objects[NAME]["spec"]["rules"][0]["filters"] = [{"type": "RequestMirror"}]
    assert trial.router.read(MODEL).foreign


def test_a_route_made_by_hand_is_foreign_and_cannot_be_rolled_back(world: World) -> None:
    world.routes.create({"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {"rules": []}})
    with pytest.raises(Frozen):
        world.begin(1, "r1", None)
    with pytest.raises(InvalidInput, match="nothing to go back to"):
        world.router.change(MODEL, lambda s: route.rollback(s, owner="ann"), action="rollback", reason="")


def test_an_unreadable_annotation_makes_the_route_foreign(trial: World) -> None:
    trial.routes.objects[NAME]["metadata"]["annotations"]["seatrial.dev/weights"] = "lots"
    assert trial.router.read(MODEL).foreign


def test_a_persons_rollback_and_adopt_end_the_freeze(trial: World) -> None:
    trial.routes.by_hand(NAME, {"cart-abandonment-v1-predictor": 1, "cart-abandonment-v2-predictor": 1})
    adopted = trial.router.change(
        MODEL, lambda s: route.adopt(s, owner="ann", watched_until=SOON, running={1, 2}), action="adopt", reason="meant"
    )
    assert adopted.weights == {1: 50, 2: 50}
    assert not trial.router.read(MODEL).foreign
    trial.routes.by_hand(NAME, {"cart-abandonment-v2-predictor": 7})
    trial.router.change(MODEL, lambda s: route.rollback(s, owner="ann"), action="rollback", reason="no")
    assert backends(trial) == [[("cart-abandonment-v1-predictor", 100)]]


def test_going_back_does_not_wait_for_the_ledger(trial: World) -> None:
    trial.store.away = True
    assert trial.go_back("r2").weights == {1: 100}
    assert trial.said[-1][0] == "ledger_not_written"


def test_an_entry_that_could_not_be_written_is_written_by_the_next_look(trial: World) -> None:
    trial.store.away = True
    trial.go_back("r2")
    trial.store.away = False
    trial.go_back("r2")
    entry = trial.book.entries(MODEL)[-1]
    assert (entry.sequence, entry.action, entry.by, entry.reason) == (5, "go_back", "r2", "errors")
    assert trial.actions()[-1] == "go_back"


def test_the_next_writer_records_the_change_before_its_own(trial: World) -> None:
    trial.store.away = True
    trial.shift(2, 25, "r2")
    trial.store.away = False
    trial.go_back("r2")
    assert trial.actions()[-2:] == ["shift", "go_back"]


def test_changes_that_nobody_recorded_leave_no_gap(trial: World) -> None:
    trial.store.away = True
    trial.shift(2, 25, "r2")
    trial.shift(2, 50, "r2")
    trial.store.away = False
    trial.go_back("r2")
    assert trial.actions()[-3:] == ["unrecorded", "shift", "go_back"]
