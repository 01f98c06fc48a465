"""The sweep over all models: what a run left that ended without its exit handler; a living run is never touched."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes_rollout import MODEL, NAME, killed
from fakes_serving import START
from fakes_settling import DEPLOYED, World, workflow

from seatrial import release
from seatrial.errors import Frozen, Unavailable
from seatrial.ports import Manifest
from steps.settle_release import sweep
from steps.settle_release.sweep_contract import Inputs, Outputs

UIDS = {version: f"0000000{version}-2fc8-49b7-a326-c47516015b87" for version in (1, 2, 3, 4)}
V1, V2 = f"{NAME}-v1", f"{NAME}-v2"


class Runs:
    """The Workflows that there are."""

    def __init__(self) -> None:
        self.runs: list[Manifest] = []
        self.asked_for_ended = 0

    def living(self) -> list[Manifest]:
        return [run for run in self.runs if run["status"].get("phase") not in {"Succeeded", "Failed", "Error"}]

    def ended(self) -> list[Manifest]:
        self.asked_for_ended += 1
        return [run for run in self.runs if run not in self.living()]


class Swept(World):
    """v1 serves; v2 of the release UIDS[2] is on trial at 10 %, watched for an hour still."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.owned_by(UIDS[2])
        for version, uid in UIDS.items():
            held = json.dumps({"model_name": MODEL, "release_id": uid}).encode()
            self.store.objects[release.reservation_key(MODEL, version)] = held
            record = self._release(version).model_copy(update={"release_id": uid})
            self.store.objects[release.key(MODEL, uid)] = record.model_dump_json().encode()
        self.store.objects[release.outcome_key(MODEL, UIDS[1])] = b'{"outcome": "promoted"}'
        self.all = Runs()
        self.said: list[str] = []

    def owned_by(self, owner: str) -> None:
        until = self.clock.now() + timedelta(hours=1)
        self.router.change(
            MODEL, lambda s: s.but(owner=owner, watched_until=until), action="shift", reason="as this test wants it"
        )

    def run_of(self, version: int, phase: str, **steps: Any) -> None:
        self.all.runs.append(
            {
                "metadata": {"name": f"release-{version}", "uid": UIDS[version]},
                "spec": {"arguments": {"parameters": [{"name": "MODEL_NAME", "value": MODEL}]}},
                "status": {**workflow(version, **steps)["status"], "phase": phase},
            }
        )

    def ports(self, **_: Any) -> Any:
        return super().ports()

    def swept(self) -> Outputs:
        return sweep.run(Inputs(), self.tmp_path, self.here())

    def here(self) -> sweep.Ports:
        return sweep.Ports(
            routes=self.routes,
            services=self.services,
            runs=self.all,
            router=self.router,
            store=self.store,
            predictions=self.predictions,
            clock=self.clock,
        )


@pytest.fixture
def world(tmp_path: Path) -> Swept:
    return Swept(tmp_path)


def outcome(world: Swept, version: int) -> str:
    return str(world.store.json(release.outcome_key(MODEL, UIDS[version]))["outcome"])


def back_at_v1(world: Swept) -> None:
    state = world.router.read(MODEL)
    assert (state.champion, state.candidate, state.weights) == (1, None, {1: 100})


def test_a_terminated_canary_is_taken_back_and_its_release_settled_as_its_exit_handler_would(world: Swept) -> None:
    world.run_of(2, "Failed", deploy_model=DEPLOYED, run_canary=143)
    assert world.swept() == Outputs(settled=2)
    back_at_v1(world)
    assert world.versions() == [V1]
    assert outcome(world, 2) == "rolled_back"
    reasons = world.store.json(release.outcome_key(MODEL, UIDS[2]))["reasons"]
    assert reasons == ["run-canary: Failed (exit 143): it broke"]
    assert world.actions()[-1] == "settle"


def test_the_candidate_of_a_run_that_was_deleted_is_taken_out(world: Swept) -> None:
    world.swept()
    back_at_v1(world)
    assert world.versions() == [V1]
    assert outcome(world, 2) == "rolled_back"


@pytest.mark.parametrize("phase", ["Running", "Pending", ""])
def test_a_living_run_is_never_touched(world: Swept, phase: str) -> None:
    """Running also means that its exit handler runs; no phase: the controller has not met it yet."""
    world.run_of(2, phase)
    before = (world.route(), world.versions(), dict(world.store.objects))
    assert world.swept() == Outputs()
    assert (world.route(), world.versions(), world.store.objects) == before


def test_a_service_that_a_terminated_deploy_left_goes(world: Swept) -> None:
    world.swept()
    world.services.put(MODEL, 3)
    world.run_of(3, "Failed", deploy_model=143)
    assert world.swept().settled == 1
    assert world.versions() == [V1]
    assert outcome(world, 3) == "failed"


def test_a_dead_candidate_gives_way_while_the_next_release_builds_and_the_rest_waits(world: Swept) -> None:
    world.run_of(2, "Failed", deploy_model=DEPLOYED, run_canary=143)
    world.run_of(3, "Running")
    world.services.put(MODEL, 3)
    world.services.put(MODEL, 4)
    assert world.swept().settled == 1
    back_at_v1(world)
    assert world.versions() == [V1, V2, f"{NAME}-v3", f"{NAME}-v4"]
    world.all.runs[-1]["status"]["phase"] = "Succeeded"
    world.swept()
    assert world.versions() == [V1]


def test_a_promoted_release_whose_exit_handler_never_ran_stays_promoted(world: Swept) -> None:
    world.router.change(
        MODEL,
        lambda s: s.but(champion=2, previous=1, candidate=None, weights={2: 100}, watched_until=None),
        action="promote",
        reason="good",
    )
    world.run_of(2, "Failed", deploy_model=DEPLOYED, run_canary=143)
    world.swept()
    assert world.router.read(MODEL).weights == {2: 100}
    assert world.versions() == [V1, V2]
    assert outcome(world, 2) == "promoted"


def test_what_a_person_answers_for_stays_until_the_time_said(world: Swept) -> None:
    world.owned_by("ann")
    world.store.objects[release.outcome_key(MODEL, UIDS[2])] = b"{}"
    assert world.swept().settled == 0
    assert world.router.read(MODEL).candidate == 2
    world.clock.sleep(3601)
    assert world.swept().settled == 2
    back_at_v1(world)
    assert world.versions() == [V1]


def test_a_route_changed_by_hand_is_left_and_counted(world: Swept) -> None:
    world.routes.by_hand(NAME, {f"{V1}-predictor": 50, f"{V2}-predictor": 50})
    assert world.swept() == Outputs(left=1)
    assert world.router.read(MODEL).weights == {1: 50, 2: 50}
    assert world.versions() == [V1, V2]
    with pytest.raises(Frozen):
        sweep.model(MODEL, world.here(), world.said.append)


def test_where_the_route_was_lost_nothing_is_deleted(world: Swept) -> None:
    world.routes.objects.clear()
    assert world.swept() == Outputs()
    assert world.versions() == [V1, V2]


def test_without_the_store_traffic_still_comes_first(world: Swept) -> None:
    world.store.away = True
    with pytest.raises(Unavailable, match="1 of 1 models"):
        world.swept()
    back_at_v1(world)
    world.store.away = False
    world.swept()
    assert world.versions() == [V1]
    assert world.actions()[-1] == "settle"


def test_without_the_api_nothing_is_believed(world: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise Unavailable("away")

    monkeypatch.setattr(world.all, "living", away)
    before = world.route()
    with pytest.raises(Unavailable):
        world.swept()
    assert world.route() == before


def test_who_took_the_route_over_meanwhile_keeps_it(world: Swept) -> None:
    """Between the look and the change another release put its own candidate on trial."""
    world.run_of(2, "Failed", deploy_model=DEPLOYED, run_canary=143)

    def taken_over() -> None:
        manifest = world.router.read(MODEL).but(owner=UIDS[3]).manifest("seatrial")
        world.routes._keep(NAME, manifest)

    world.routes.before_write = [taken_over]
    world.swept()
    assert world.router.read(MODEL).candidate == 2
    assert world.router.read(MODEL).owner == UIDS[3]


def test_where_nothing_was_left_only_the_living_are_asked_for(world: Swept) -> None:
    world.run_of(2, "Running")
    world.swept()
    assert world.all.asked_for_ended == 0


def test_a_first_release_that_was_terminated_leaves_no_route(tmp_path: Path) -> None:
    world = Swept(tmp_path)
    first = world.router.read(MODEL).but(champion=None, weights={}, candidate=2)
    world.routes._keep(NAME, first.manifest("seatrial"))
    world.services.delete(V1)
    world.swept()
    assert (world.route(), world.versions()) == (None, [])


def test_the_moment_of_the_end_is_kept(world: Swept) -> None:
    world.swept()
    assert str(world.store.json(release.outcome_key(MODEL, UIDS[2]))["at"]) >= START.isoformat()


def test_one_model_that_cannot_be_settled_keeps_no_other_from_it(world: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.services, "models", lambda: ["a_broken_one", MODEL])
    read = world.routes.get

    def some(name: str) -> Any:
        if name == "a-broken-one":
            broken = world.router.read(MODEL).but(model_name="a_broken_one").manifest("seatrial")
            broken["spec"]["rules"] = []
            return broken
        return read(name)

    monkeypatch.setattr(world.routes, "get", some)
    assert world.swept() == Outputs(settled=2, left=1)
    back_at_v1(world)


def test_killed_after_any_effect_the_next_sweep_ends_right(tmp_path: Path) -> None:
    """Walks through all effects: dies after the first, after the second … until a sweep survives."""
    kills = 0
    while True:
        (tmp_path / str(kills)).mkdir()
        world = Swept(tmp_path / str(kills))
        world.run_of(2, "Failed", deploy_model=DEPLOYED, run_canary=143)
        world.deadly.survive = len(world.deadly.effects) + kills
        died = killed(world.swept)
        world.deadly.survive = None
        world.swept()
        back_at_v1(world)
        assert world.versions() == [V1]
        assert outcome(world, 2) == "rolled_back"
        assert world.actions()[-1] == "settle"
        if not died:
            break
        kills += 1
    assert kills == 4
