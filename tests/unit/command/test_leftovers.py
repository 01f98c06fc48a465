"""What a crash left is put right; what somebody answers for is left alone."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes_commands import world_of
from fakes_serving import NAMESPACE, START

from seatrial import release
from seatrial.app.commands._leftovers import WHY, settle, settle_leftovers
from seatrial.app.commands._ports import Local
from seatrial.app.runner.locks import Locks
from seatrial.errors import Frozen
from seatrial.route import Router, RouteState

MODEL = "cart_abandonment"
RELEASE = "bf04435f-2fc8-49b7-a326-c47516015b87"
LATER = START + timedelta(hours=1)


def on_trial(world: Local, owner: str, until: datetime) -> None:
    """v1 serves, v2 is on trial."""
    state = RouteState(
        model_name=MODEL,
        exists=True,
        champion=1,
        candidate=2,
        weights={1: 90, 2: 10},
        owner=owner,
        watched_until=until,
    )
    world.router.change(MODEL, lambda _: state, action="begin", reason="test")


@pytest.mark.parametrize("until", [START - timedelta(seconds=1), LATER])
def test_a_candidate_whose_release_is_gone_is_taken_out_however_long_it_was_to_be_watched(
    until: datetime, tmp_path: Path
) -> None:
    world, said = world_of(tmp_path), list[str]()
    on_trial(world, RELEASE, until)
    settle_leftovers(world, [MODEL], said.append)
    after = world.router.read(MODEL)
    assert (after.candidate, after.weights) == (None, {1: 100})
    assert said
    assert said[0].startswith("v2 of cart_abandonment was on trial and nobody watched it")


def test_a_candidate_whose_release_is_alive_stays(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    on_trial(world, RELEASE, LATER)
    alive = Locks(tmp_path / "locks", "release-x")
    assert alive.acquire(f"{NAMESPACE}/Mutex/roll-out-{MODEL}")
    settle_leftovers(world, [MODEL], pytest.fail)
    assert world.router.read(MODEL).candidate == 2
    alive.release_all()


def test_a_person_who_adopted_weights_answers_for_them_until_the_time_said(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    on_trial(world, "alice", LATER)
    settle_leftovers(world, [MODEL], pytest.fail)
    assert world.router.read(MODEL).candidate == 2


def test_a_route_changed_by_hand_is_named_and_left_alone(tmp_path: Path) -> None:
    world, said = world_of(tmp_path), list[str]()
    on_trial(world, RELEASE, START)
    routes: Any = world.router._routes
    manifest = routes.get("cart-abandonment")
    assert manifest is not None
    manifest["spec"]["rules"][-1]["backendRefs"][0]["weight"] = 50
    routes.replace(
        "cart-abandonment", {"spec": manifest["spec"]}, resource_version=manifest["metadata"]["resourceVersion"]
    )
    settle_leftovers(world, [MODEL], said.append)
    assert world.router.read(MODEL).candidate == 2
    assert "by hand" in said[0]


def test_a_change_that_its_writer_did_not_come_to_record_is_recorded(tmp_path: Path) -> None:
    """Killed between the promotion and its ledger entry."""
    world = world_of(tmp_path)
    promoted = RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100}, owner=RELEASE)
    unrecorded = Router(world.router._routes, world.clock, namespace=NAMESPACE)
    unrecorded.change(MODEL, lambda _: promoted, action="promote", reason="first")
    settle_leftovers(world, [MODEL], pytest.fail)
    (entry,) = world.book.entries(MODEL)
    assert (entry.action, entry.by, entry.reason, entry.weights) == ("promote", RELEASE, "first", {"1": 100})
    settle_leftovers(world, [MODEL], pytest.fail)
    assert len(world.book.entries(MODEL)) == 1


def killed_between_service_and_route(world: Local) -> None:
    """v1 serves; the release of v2 made its service, and died."""
    serving = RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100}, owner="r1")
    world.router.change(MODEL, lambda _: serving, action="promote", reason="test")
    store: Any = world.store
    store.objects[release.reservation_key(MODEL, 2)] = json.dumps({"release_id": RELEASE}).encode()
    services: Any = world.services
    for version in (1, 2):
        services.put(MODEL, version)


def test_a_release_killed_between_service_and_route_leaves_no_service_and_gets_its_outcome(tmp_path: Path) -> None:
    world, said = world_of(tmp_path), list[str]()
    killed_between_service_and_route(world)
    settle_leftovers(world, [MODEL], said.append)
    assert world.services.names(MODEL) == ["cart-abandonment-v1"]
    assert said == ["deleted cart-abandonment-v2: nobody needs it"]
    (end,) = world.releases(MODEL)
    assert (end["outcome"], end["version"], end["reasons"]) == ("failed", 2, [WHY])


def test_an_outcome_that_the_release_itself_wrote_stands(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    killed_between_service_and_route(world)
    world.store.write(release.outcome_key(MODEL, RELEASE), b'{"outcome": "refused"}')
    settle_leftovers(world, [MODEL], lambda _: None)
    assert world.releases(MODEL) == [{"outcome": "refused"}]


def test_what_a_living_roll_out_has_just_started_stays(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    killed_between_service_and_route(world)
    alive = Locks(tmp_path / "locks", "release-x")
    assert alive.acquire(f"{NAMESPACE}/Mutex/roll-out-{MODEL}")
    settle_leftovers(world, [MODEL], pytest.fail)
    assert len(world.services.names(MODEL)) == 2
    alive.release_all()


def test_where_the_route_was_lost_nothing_that_could_serve_again_is_deleted(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    killed_between_service_and_route(world)
    routes: Any = world.router._routes
    routes.objects.clear()
    settle_leftovers(world, [MODEL], pytest.fail)
    assert len(world.services.names(MODEL)) == 2


def test_a_candidate_taken_out_gets_its_outcome(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    on_trial(world, RELEASE, LATER)
    world.store.write(release.reservation_key(MODEL, 2), json.dumps({"release_id": RELEASE}).encode())
    settle_leftovers(world, [MODEL], lambda _: None)
    assert [(end["outcome"], end["version"]) for end in world.releases(MODEL)] == [("rolled_back", 2)]


def test_settling_a_route_changed_by_hand_is_refused(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    killed_between_service_and_route(world)
    routes: Any = world.router._routes
    routes.by_hand("cart-abandonment", {"cart-abandonment-v2-predictor": 100})
    with pytest.raises(Frozen):
        settle(world, MODEL, pytest.fail)
    assert len(world.services.names(MODEL)) == 2
