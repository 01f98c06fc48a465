"""The control API answers as a real API server with KServe's webhooks answered; what differs stands in a list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from control_server import control_api
from wire.control_api import exchanges
from wire.control_api.record import recorded

WIRE = Path(__file__).resolve().parents[1] / "wire" / "control_api"
NAMESPACE = "seatrial"
DIFFERENCES: dict[str, dict[str, Any]] = yaml.safe_load((WIRE / "differences.yaml").read_text())
NAMES = [exchange.name for exchange in exchanges.exchanges(NAMESPACE)]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with control_api(tmp_path_factory.mktemp("control")) as api:
        return exchanges.answers(api.http, NAMESPACE)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_the_api_servers(answered: dict[str, Any], name: str) -> None:
    difference = DIFFERENCES.get(name, {})
    expected = {**recorded()[name], **difference.get("ours", {})}
    if "ours" in difference and "status" in difference["ours"]:
        expected = difference["ours"]  # another answer altogether
    assert answered[name] == expected, difference.get("because", "no difference is listed")


def test_every_exchange_was_recorded_and_every_difference_is_one() -> None:
    assert sorted(recorded()) == sorted(NAMES)
    for name, difference in DIFFERENCES.items():
        assert difference["because"], name
        assert {**recorded()[name], **difference["ours"]} != recorded()[name], f"{name} differs no longer"
