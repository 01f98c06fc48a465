"""How parts come up, and what is said of one that does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from infra.cluster import rising
from infra.cluster.cluster import Cluster
from infra.cluster.parts.part import Part, supervised
from infra.cluster.places import Place
from infra.cluster.rising import Clock, Rising
from seatrial.app.sandbox.supervisor import Process
from seatrial.errors import Unavailable


class FakeSupervisor:
    """Says, look after look, the states that it was given, and repeats the last."""

    def __init__(self, states: list[str]) -> None:
        self.states: Iterator[str] = iter(states)
        self.last = "UNKNOWN"
        self.added: list[str] = []
        self.stopped: list[str] = []

    def add(self, name: str) -> None:
        self.added.append(name)

    def stop(self, name: str) -> None:
        self.stopped.append(name)

    def processes(self) -> dict[str, Process]:
        self.last = next(self.states, self.last)
        return {"etcd": Process(name="etcd", state=self.last, pid=1, note="")}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rising, "_POLL_S", 0)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "cluster")
    made.programs.mkdir(parents=True)
    made.logs.mkdir()
    return made


def cluster(place: Place, supervisor: FakeSupervisor, healthy: Callable[[], bool], within_s: float = 60) -> Cluster:
    part = Part(program=supervised(place, "etcd", ("etcd",)), healthy=healthy, within_s=within_s)
    return cast("Cluster", SimpleNamespace(place=place, supervisor=supervisor, parts=lambda: {"etcd": part}))


def after(looks: int) -> Callable[[], bool]:
    """Healthy from the look after `looks`."""
    left = iter([False] * looks)
    return lambda: next(left, True)


def test_a_part_is_waited_for_until_it_is_well_and_timed(place: Place) -> None:
    said: list[str] = []
    Rising(cluster(place, FakeSupervisor(["RUNNING"]), after(3)), Clock(said.append)).reach("etcd")
    assert [line.split()[0] for line in said] == ["etcd"]


def test_a_part_may_end_twice_on_its_way_up(place: Place) -> None:
    states = ["STARTING", "BACKOFF", "BACKOFF", "STARTING", "BACKOFF", "RUNNING"]
    Rising(cluster(place, FakeSupervisor(states), after(6))).reach("etcd")


def test_a_part_that_ends_a_third_time_is_named_with_the_end_of_its_log(place: Place) -> None:
    (place.logs / "etcd.log").write_text("old\n" * 30 + "the disk is full\n")
    states = ["BACKOFF", "STARTING", "BACKOFF", "STARTING", "BACKOFF"]
    with pytest.raises(Unavailable) as caught:
        Rising(cluster(place, FakeSupervisor(states), lambda: False)).reach("etcd")
    assert str(caught.value).startswith(f"etcd ends again and again; the end of {place.logs / 'etcd.log'}:\n")
    assert str(caught.value).endswith("the disk is full")
    assert caught.value.exit_code == 75


def test_a_part_that_runs_and_never_answers_is_not_waited_for_longer_than_it_may_take(place: Place) -> None:
    with pytest.raises(Unavailable, match=r"etcd is not well after 0 s; the end of .*\n.nothing was written."):
        Rising(cluster(place, FakeSupervisor(["RUNNING"]), lambda: False, within_s=0)).reach("etcd")


def test_what_begins_is_known_to_supervisord_and_read_by_root_alone(place: Place) -> None:
    supervisor = FakeSupervisor(["RUNNING"])
    Rising(cluster(place, supervisor, after(0))).begin("etcd")
    conf = place.programs / "etcd.conf"
    assert supervisor.added == ["etcd"]
    assert conf.read_text().startswith("[program:etcd]\n")
    assert conf.stat().st_mode & 0o077 == 0


def test_only_what_is_there_is_stopped_and_its_end_awaited(place: Place) -> None:
    supervisor: Any = FakeSupervisor(["RUNNING", "RUNNING", "STOPPING", "STOPPED"])
    rising.stop(cluster(place, supervisor, after(0)), "etcd", "no-such-part")
    assert supervisor.stopped == ["etcd"]
    assert supervisor.last == "STOPPED"
