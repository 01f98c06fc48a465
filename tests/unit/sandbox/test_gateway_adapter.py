"""What the gateway's answers and counters say."""

from __future__ import annotations

import json

import pytest

from seatrial.adapters import gateway
from seatrial.errors import InvalidInput
from seatrial.ports import ArmCounts

NAME = "cart_abandonment"
CLUSTER = "httproute-seatrial-cart-abandonment-gw-seatrial-seatrial-ep-web-{rule}-0a1b2c3d4e5f"
BACKEND = "svc-seatrial-cart-abandonment-v{version}-predictor-80@kubernetesgateway"


def page(*samples: tuple[str, str, int]) -> str:
    lines = ["# HELP traefik_service_requests_total How many", "# TYPE traefik_service_requests_total counter"]
    lines += [
        f'traefik_service_requests_total{{code="{code}",method="POST",protocol="http",service="{service}"}} {count}'
        for service, code, count in samples
    ]
    lines += ["# TYPE traefik_service_request_duration_seconds histogram", "this line is not looked at"]
    return "\n".join(lines)


def local(version: int, rule: str = "weighted0", model: str = "cart-abandonment") -> str:
    return f"seatrial-{model}-{rule}-{model}-v{version}-predictor@file"


def test_codes_are_summed_and_refusals_are_errors() -> None:
    text = page(
        (local(1), "200", 90), (local(1), "400", 4), (local(1), "503", 1), (local(2), "200", 10), (local(2), "0", 2)
    )
    assert gateway.counts(text, NAME, "seatrial") == {
        1: ArmCounts(requests=95, errors=5),
        2: ArmCounts(requests=12, errors=2),
    }


def test_header_requests_and_other_models_are_not_counted() -> None:
    text = page(
        (local(1), "200", 5),
        (local(2, "direct0"), "200", 70),
        (local(1, model="abandonment"), "200", 70),
        (local(1, model="my-cart-abandonment"), "200", 70),
        ("prometheus@internal", "200", 70),
    )
    assert gateway.counts(text, NAME, "seatrial") == {1: ArmCounts(requests=5, errors=0)}


def test_a_gateway_that_counted_nothing_gives_nothing() -> None:
    assert gateway.counts(page(), NAME, "seatrial") == {}


def test_in_the_cluster_the_last_rule_is_the_weighted_one() -> None:
    header, weighted = (f"{CLUSTER.format(rule=rule)}-{BACKEND}" for rule in (0, 1))
    text = page(
        (header.format(version=2), "200", 70),
        (weighted.format(version=1), "200", 9),
        (weighted.format(version=2), "500", 1),
    )
    assert gateway.counts(text, NAME, "seatrial") == {
        1: ArmCounts(requests=9, errors=0),
        2: ArmCounts(requests=1, errors=1),
    }


def test_an_answer_names_its_version_and_holds_its_numbers() -> None:
    body = {"model_version": "42", "outputs": [{"name": "p", "shape": [2, 1], "data": [0.25, 1]}]}
    found = gateway.answer(200, json.dumps(body).encode(), seconds=0.5)
    assert (found.status, found.version, found.outputs, found.error) == (200, 42, {"p": [0.25, 1.0]}, "")


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error": "unexpected shape"}', "unexpected shape"),
        (503, b"no available server\n", "no available server"),
        (502, b"{}", "status 502"),
        (200, b"<html>", "<html>"),
        (200, b"[]", "[]"),
    ],
)
def test_whatever_comes_is_an_answer(status: int, body: bytes, error: str) -> None:
    found = gateway.answer(status, body, seconds=0)
    assert (found.status, found.version, found.error) == (status, None, error)


@pytest.mark.parametrize("version", ["0", "x", "1.0", "", None, "９"])
def test_a_version_that_is_no_version_is_none(version: str | None) -> None:
    assert gateway.answer(200, json.dumps({"model_version": version}).encode(), seconds=0).version is None


def test_nobody_there_is_an_answer_too() -> None:
    predictions = gateway.GatewayPredictions("http://127.0.0.1:9")
    found = predictions.ask(NAME, b"{}")
    predictions.close()
    assert (found.status, found.version) == (0, None)
    assert found.error.startswith("ConnectError")


def test_the_environment_must_name_the_gateway() -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_GATEWAY_METRICS_URL, SEATRIAL_PROMOTE_ON_REPLAY not set"):
        gateway.from_environment({"SEATRIAL_GATEWAY_URL": "http://g"})
    with pytest.raises(InvalidInput, match="must be true or false"):
        gateway.from_environment(
            {
                "SEATRIAL_GATEWAY_URL": "http://g",
                "SEATRIAL_GATEWAY_METRICS_URL": "http://g",
                "SEATRIAL_PROMOTE_ON_REPLAY": "yes",
            }
        )
