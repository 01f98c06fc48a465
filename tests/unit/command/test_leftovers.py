"""What a crash left is put right; what somebody answers for is left alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes_serving import NAMESPACE, START, FakeClock, MemoryRoutes, MemoryServices, MemoryStore

from seatrial.app.commands._leftovers import settle_leftovers
from seatrial.app.commands._ports import Ports
from seatrial.app.runner.locks import Locks
from seatrial.app.sandbox import Sandbox
from seatrial.ledger import Book
from seatrial.route import Router, RouteState

MODEL = "cart_abandonment"
RELEASE = "bf04435f-2fc8-49b7-a326-c47516015b87"
LATER = START + timedelta(hours=1)


def ports(home: Path) -> Ports:
    clock, store = FakeClock(), MemoryStore()
    book = Book(store, clock)
    unused: Any = None  # a crash is put right without asking anybody
    return Ports(
        sandbox=Sandbox(
            home=home,
            gateway_url="",
            gateway_metrics_url="",
            control_url="",
            store_url="",
            tracking_url="",
            kubeconfig=home,
            namespace=NAMESPACE,
            environment={},
        ),
        store=store,
        services=MemoryServices(),
        router=Router(MemoryRoutes(), clock, namespace=NAMESPACE, book=book),
        predictions=unused,
        traffic=unused,
        clock=clock,
        book=book,
    )


def on_trial(world: Ports, owner: str, until: datetime) -> None:
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
    world, said = ports(tmp_path), list[str]()
    on_trial(world, RELEASE, until)
    settle_leftovers(world, [MODEL], said.append)
    after = world.router.read(MODEL)
    assert (after.candidate, after.weights) == (None, {1: 100})
    assert said
    assert said[0].startswith("v2 of cart_abandonment was on trial and nobody watched it")


def test_a_candidate_whose_release_is_alive_stays(tmp_path: Path) -> None:
    world = ports(tmp_path)
    on_trial(world, RELEASE, LATER)
    alive = Locks(tmp_path / "locks", "release-x")
    assert alive.acquire(f"{NAMESPACE}/Mutex/roll-out-{MODEL}")
    settle_leftovers(world, [MODEL], pytest.fail)
    assert world.router.read(MODEL).candidate == 2
    alive.release_all()


def test_a_person_who_adopted_weights_answers_for_them_until_the_time_said(tmp_path: Path) -> None:
    world = ports(tmp_path)
    on_trial(world, "alice", LATER)
    settle_leftovers(world, [MODEL], pytest.fail)
    assert world.router.read(MODEL).candidate == 2


def test_a_route_changed_by_hand_is_named_and_left_alone(tmp_path: Path) -> None:
    world, said = ports(tmp_path), list[str]()
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
    world = ports(tmp_path)
    promoted = RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100}, owner=RELEASE)
    unrecorded = Router(world.router._routes, world.clock, namespace=NAMESPACE)
    unrecorded.change(MODEL, lambda _: promoted, action="promote", reason="first")
    settle_leftovers(world, [MODEL], pytest.fail)
    (entry,) = world.book.entries(MODEL)
    assert (entry.action, entry.by, entry.reason, entry.weights) == ("promote", RELEASE, "first", {"1": 100})
    settle_leftovers(world, [MODEL], pytest.fail)
    assert len(world.book.entries(MODEL)) == 1
