"""A drill passes only when the champion has everything back and nothing was lost outside the candidate's share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seatrial.app.commands._drilling import AFTER_MIN, Drilled, _faults
from seatrial.app.commands._load import Seen
from seatrial.app.views.outcome import Ended
from seatrial.route import RouteState

MODEL = "cart_abandonment"
BACK = RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100})
SEEN = Seen(
    requests=5000,
    seconds=25.0,
    lost=0,
    wrong=0,
    failed=60,
    early=0,
    answered_by={"v1": 4940},
    first_bad_s=10.0,
    champion_only_s=12.0,
    after=AFTER_MIN,
)
GOOD = Drilled(
    fault="errors",
    ended=Ended(outcome="rolled_back", model=MODEL, version=2, exit_code=11, seconds=26),
    seen=SEEN,
    champion=1,
    champion_errors=0,
    faults=(),
    log=Path("load.jsonl"),
)
QUIET = replace(SEEN, failed=0, first_bad_s=None)


def faults(drill: Drilled, state: RouteState = BACK) -> list[str]:
    ports: Any = SimpleNamespace(router=SimpleNamespace(read=lambda _: state))
    return list(_faults(ports, drill))


@pytest.mark.parametrize("drill", [GOOD, replace(GOOD, fault="never_ready", seen=QUIET)])
def test_a_drill_that_went_as_it_must_has_no_fault(drill: Drilled) -> None:
    assert faults(drill) == []


@pytest.mark.parametrize(
    ("drill", "said"),
    [
        (replace(GOOD, ended=replace(GOOD.ended, outcome="promoted")), "ended promoted"),
        (replace(GOOD, ended=replace(GOOD.ended, outcome="refused")), "ended refused"),
        (replace(GOOD, seen=replace(SEEN, after=AFTER_MIN - 1)), "must answer everything in the end"),
        (replace(GOOD, seen=replace(SEEN, lost=1)), "1 requests were lost"),
        (replace(GOOD, seen=replace(SEEN, wrong=1)), "1 answered wrong"),
        (replace(GOOD, seen=replace(SEEN, early=1)), "1 requests without the marker"),
        (replace(GOOD, champion_errors=1), "1 errors were v1's own"),
        (replace(GOOD, seen=QUIET), "the fault was never met"),
        (replace(GOOD, fault="never_ready"), "60 failed"),
        (replace(GOOD, fault="never_ready", seen=replace(QUIET, answered_by={"v1": 1, "v2": 1})), "nobody but v1"),
    ],
)
def test_each_thing_that_must_not_happen_is_a_fault(drill: Drilled, said: str) -> None:
    (found,) = faults(drill)
    assert said in found


def test_a_route_that_gives_the_champion_less_than_everything_is_a_fault() -> None:
    shared = RouteState(model_name=MODEL, exists=True, champion=1, candidate=2, weights={1: 90, 2: 10}, owner="r")
    (found,) = faults(GOOD, shared)
    assert "v1 must have all traffic" in found
