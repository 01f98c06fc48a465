"""The read-back counts answers, not statuses."""

from __future__ import annotations

import pytest
from fakes_serving import NAMESPACE, FakeClock, MemoryRoutes, RoutedPredictions

from seatrial import route
from seatrial.errors import Unavailable
from seatrial.ports import Answer
from seatrial.route import RouteState

MODEL = "cart_abandonment"
SPLIT = RouteState(model_name=MODEL, exists=True, champion=1, candidate=2, weights={1: 99, 2: 1}, owner="r2")
REQUEST = b'{"id": "a"}'


def gateway(state: RouteState | None) -> RoutedPredictions:
    routes = MemoryRoutes()
    if state is not None:
        routes.create(state.manifest(NAMESPACE))
    return RoutedPredictions(routes, {})


def read_back(predictions: RoutedPredictions, *expected: int, consecutive: int = 20) -> dict[str, int]:
    return route.read_back(predictions, FakeClock(), MODEL, REQUEST, expected=expected, consecutive=consecutive)


def test_twenty_answers_in_a_row_show_who_serves() -> None:
    alone = RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100})
    assert read_back(gateway(alone), 1) == {"v1": 20}


def test_a_gateway_that_follows_late_is_waited_for() -> None:
    predictions = gateway(RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100}))
    predictions.delay = 7
    assert read_back(predictions, 1) == {"404": 7, "v1": 20}


def test_one_answer_in_a_hundred_from_another_version_is_seen() -> None:
    with pytest.raises(Unavailable, match=r"v1 was to answer 200 times in a row.*'v2'"):
        read_back(gateway(SPLIT), 1, consecutive=200)


def test_both_arms_may_be_expected() -> None:
    assert set(read_back(gateway(SPLIT), 1, 2, consecutive=120)) == {"v1", "v2"}


def test_a_removed_route_is_seen_by_404() -> None:
    assert read_back(gateway(None)) == {"404": 20}


def test_no_answer_is_not_a_removed_route() -> None:
    predictions = gateway(None)
    predictions.dead = True
    with pytest.raises(Unavailable, match="404 was to answer"):
        read_back(predictions)


def test_an_error_of_the_right_version_does_not_count() -> None:
    predictions = gateway(RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100}))
    predictions.wrong[1] = Answer(status=503, version=None)
    with pytest.raises(Unavailable, match="'503'"):
        read_back(predictions, 1)
