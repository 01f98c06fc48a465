"""What a person says and asks, with everything in memory: exit codes, and what is told."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes_commands import MODEL, NAME, lose_route, reserve, serve, world_of
from fakes_serving import START
from rich.console import Console

from seatrial.app import cli, sandbox
from seatrial.app.commands import _sandbox, history, status
from seatrial.app.commands._ports import Local
from seatrial.app.commands._restoring import served
from seatrial.app.runner.locks import Locks
from seatrial.app.sandbox import Part
from seatrial.app.views.history import page
from seatrial.errors import Unavailable
from seatrial.ledger import Entry

PART = Part(name="gateway", state="running", pid=7, port=8080, note="")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Local:
    """v2 serves, v1 served before; every command finds this sandbox."""
    made = world_of(tmp_path)
    monkeypatch.setattr(sandbox, "find", lambda _: made.sandbox)
    monkeypatch.setattr(sandbox, "parts", lambda _: [PART])
    monkeypatch.setattr(_sandbox, "connect", lambda _: made)
    serve(made, 1)
    serve(made, 2, previous=1)
    return made


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def by_hand(world: Any, weights: dict[str, int]) -> None:
    world.router._routes.by_hand(NAME, {f"{NAME}-{version}-predictor": percent for version, percent in weights.items()})


def found(capsys: pytest.CaptureFixture[str], *, code: int = 0) -> dict[str, Any]:
    came, out, _ = told(capsys, "status", MODEL, "--json")
    assert came == code
    facts: dict[str, Any] = json.loads(out)
    return facts


# settle, adopt, drill on a route changed by hand


def test_settle_says_no_on_a_route_changed_by_hand(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    by_hand(world, {"v1": 50, "v2": 50})
    code, out, err = told(capsys, "settle", MODEL)
    assert (code, "settled" in out) == (78, False)
    assert "seatrial adopt" in err


def test_settle_leaves_a_living_roll_out_alone_and_says_so(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    alive = Locks(world.locks, "release-x")
    assert alive.acquire(f"{world.namespace}/Mutex/roll-out-{MODEL}")
    code, out, _ = told(capsys, "settle", MODEL)
    assert code == 0
    assert out.splitlines()[0] == f"· a roll-out of {MODEL} is alive: it settles what it leaves"
    alive.release_all()


def test_a_drill_is_refused_on_a_route_changed_by_hand_before_anything(
    world: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand(world, {"v1": 50, "v2": 50})
    before = (dict(world.store.objects), dict(world.router._routes.objects))
    code, _, err = told(capsys, "drill", MODEL, "--fault", "errors")
    assert code == 78
    assert "by hand" in err
    assert (world.store.objects, world.router._routes.objects) == before


def test_weights_on_a_version_without_a_service_are_not_adopted(
    world: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand(world, {"v9": 100})
    code, _, err = told(capsys, "adopt", MODEL, "--reason", "meant")
    assert code == 78
    assert "v9 has no service" in err
    assert world.router.read(MODEL).foreign


def test_what_has_a_service_is_adopted(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    by_hand(world, {"v1": 100})
    code, out, _ = told(capsys, "adopt", MODEL, "--reason", "meant")
    assert (code, out) == (0, f"adopted {MODEL}: v1 100 %\n")


# status


def test_without_the_api_status_shows_the_parts_and_what_the_ledger_knows(
    world: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: str) -> None:
        raise Unavailable("the Kubernetes API does not answer")

    monkeypatch.setattr(world.router._routes, "get", away)
    monkeypatch.setattr(world.predictions, "_followed", lambda _: None)
    facts = found(capsys, code=75)
    (model,) = facts["models"]
    assert (model["route_known"], model["ledger"]["champion"]) == (False, 2)
    assert model["trouble"] == ["the Kubernetes API does not answer"]
    assert [part["name"] for part in facts["parts"]] == ["gateway"]
    code, out, err = told(capsys, "status", MODEL)
    assert (code, err) == (75, "")
    assert "who is to serve is not known" in out
    assert "8080" in out


def test_a_champion_whose_service_is_gone_is_trouble_with_a_way_out(
    world: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    world.services.delete(f"{NAME}-v2")
    (model,) = found(capsys)["models"]
    (trouble,) = model["trouble"]
    assert "v2 gets 100 % of the traffic and has no service" in trouble
    assert f"`seatrial rollback {MODEL}` goes to v1" in trouble
    assert f"`seatrial release {MODEL} --version 2`" in trouble


def test_a_way_back_without_a_service_is_trouble(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    world.services.delete(f"{NAME}-v1")
    (model,) = found(capsys)["models"]
    assert ["a rollback would fail" in text for text in model["trouble"]] == [True]


def test_a_lost_route_says_who_served_last_and_what_to_do(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    lose_route(world)
    (model,) = found(capsys)["models"]
    (trouble,) = model["trouble"]
    assert "v2 served last (entry 2, promote by r1" in trouble
    assert f"`seatrial settle {MODEL} --from-ledger`" in trouble


def test_a_gateway_that_is_away_is_trouble_and_no_answer(world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    world.predictions.dead = True
    (model,) = found(capsys)["models"]
    assert model["answers"] == {}
    assert ["the gateway does not answer" in text for text in model["trouble"]] == [True]


def test_nothing_is_wrong_where_nothing_is(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    (model,) = found(capsys)["models"]
    assert (model["champion"], model["answers"], model["trouble"]) == (2, {"v2": 10}, [])


def test_outcomes_are_in_the_order_of_their_ends(world: Local) -> None:
    ends = [(3, "2026-01-03T00:00:00"), (1, "2026-01-04T00:00:00"), (2, None), (1, None)]
    for number, (version, at) in enumerate(ends):
        facts = {"version": version, **({"at": at} if at else {})}
        world.store.write(f"models/{MODEL}/outcomes/{number}.json", json.dumps(facts).encode())
    assert [(end["version"], end.get("at")) for end in world.releases(MODEL)] == [
        (1, None),
        (2, None),
        (3, "2026-01-03T00:00:00"),
        (1, "2026-01-04T00:00:00"),
    ]


# settle --from-ledger


def test_a_lost_route_is_made_again_with_its_way_back(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    lose_route(world)
    code, out, err = told(capsys, "settle", MODEL, "--from-ledger")
    assert (code, err) == (0, "")
    assert out.startswith(f"restored {MODEL}: v2 answers (20 of ")
    state = world.router.read(MODEL)
    assert (state.champion, state.previous, state.weights, state.sequence) == (2, 1, {2: 100}, 3)
    last = world.book.last(MODEL)
    assert last is not None
    assert (last.sequence, last.champion) == (3, 2)
    assert "made again from ledger entry 2" in last.reason


def test_a_route_that_is_there_is_never_made_from_the_ledger(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    before = world.router.read(MODEL)
    code, _, err = told(capsys, "settle", MODEL, "--from-ledger")
    assert code == 78
    assert "the truth" in err
    assert world.router.read(MODEL) == before


def spoil(world: Any) -> None:
    keys = world.store.keys(f"models/{MODEL}/ledger/")
    entry = json.loads(world.store.objects[keys[0]])
    world.store.objects[keys[0]] = json.dumps({**entry, "reason": "another"}).encode()


def lose_everything(world: Any) -> None:
    for key in world.store.keys(f"models/{MODEL}/ledger/"):
        del world.store.objects[key]


@pytest.mark.parametrize(
    ("also", "code", "said"),
    [
        (lambda world: world.services.delete(f"{NAME}-v2"), 78, "its service is gone as well"),
        (spoil, 76, "one was altered"),
        (lose_everything, 78, "nobody served last"),
    ],
    ids=["no service", "an altered ledger", "no ledger"],
)
def test_a_route_is_not_made_from_what_cannot_serve_or_be_trusted(
    also: Callable[[Local], None], code: int, said: str, world: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    lose_route(world)
    also(world)
    came, _, err = told(capsys, "settle", MODEL, "--from-ledger")
    assert came == code
    assert said in err
    assert not world.router.read(MODEL).exists


def entry(sequence: int, action: Any, champion: int | None) -> Entry:
    return Entry(
        sequence=sequence, before=f"sha256:{'0' * 64}", model_name=MODEL, at=START, action=action,
        weights={}, champion=champion, by="r", reason="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ([], (None, None)),
        ([("begin", None)], (None, None)),
        ([("begin", None), ("promote", 1)], (1, None)),
        ([("promote", 1), ("begin", 1), ("shift", 1)], (1, None)),
        ([("promote", 1), ("begin", 1), ("promote", 2), ("begin", 2)], (2, 1)),
        ([("promote", 1), ("promote", 2), ("rollback", 1), ("begin", 1)], (1, None)),
        ([("promote", 1), ("adopt", 2)], (2, 1)),
        ([("promote", 1), ("unrecorded", None), ("promote", 3)], (3, 1)),
    ],
)
def test_who_served_last_and_before_follows_from_the_ledger(changes: Any, wanted: tuple[int | None, ...]) -> None:
    entries = [entry(number, action, champion) for number, (action, champion) in enumerate(changes, start=1)]
    assert served(entries) == wanted


# history


def test_history_shows_every_change_and_that_the_chain_is_whole(
    world: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = told(capsys, "history", MODEL, "--json")
    facts = json.loads(out)
    assert (code, facts["whole"], facts["trouble"]) == (0, True, [])
    assert [(one["sequence"], one["action"], one["champion"]) for one in facts["entries"]] == [
        (1, "promote", 1),
        (2, "promote", 2),
    ]


def test_an_altered_ledger_is_shown_and_exits_76(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(world)
    code, out, _ = told(capsys, "history", MODEL)
    assert code == 76
    assert "cannot be trusted: ledger entry 2 does not follow entry 1" in out
    assert "another" in out


def test_an_entry_that_is_missing_at_the_end_shows_against_the_route(world: Any) -> None:
    del world.store.objects[world.store.keys(f"models/{MODEL}/ledger/")[-1]]
    facts = history.of_model(world, MODEL)
    assert facts["whole"]
    assert ["1 changes ahead of the ledger" in text for text in facts["trouble"]] == [True]


def test_history_shows_the_latest_and_says_how_many_are_before(world: Local) -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(page(history.of_model(world, MODEL), last=1))
    shown = console.export_text()
    assert "v2 100 %" in shown
    assert "v1 100 %" not in shown
    assert "and 1 before them" in shown
    assert "the chain of 2 is whole" in shown


# release --version


def test_a_version_that_was_never_deployed_cannot_be_rolled_out_again(
    world: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sandbox, "started", lambda *_: world)
    reserve(world, [(7, "r7")])
    code, _, err = told(capsys, "release", MODEL, "--version", "7")
    assert code == 78
    assert "no v7 of" in err


def test_a_version_is_rolled_out_again_with_its_own_data(world: Local, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, "release", MODEL, "--version", "1", "--data", "s3://b/x")
    assert code == 78
    assert "leave --data and --revision out" in err


def test_looking_says_everything_once() -> None:
    looked = status.Looked()

    def away() -> None:
        raise Unavailable("away")

    assert [looked.at(away, number) for number in (1, 2)] == [1, 2]
    assert looked.trouble == ["away"]
