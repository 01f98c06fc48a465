"""From routes to the gateway's file."""

from __future__ import annotations

import serving_images as made

from seatrial.app.sandbox.control.routing import dynamic, route_status

WEIGHTED, DIRECT = "seatrial-doubler-weighted0", "seatrial-doubler-direct0"
ENDPOINTS = {"doubler-v1-predictor": [7001, 7002], "doubler-v2-predictor": [7003]}


def test_weights_reach_the_gateway() -> None:
    services = dynamic([made.route({1: 90, 2: 10})], ENDPOINTS, control_port=1)["http"]["services"]
    assert services[WEIGHTED]["weighted"]["services"] == [
        {"name": f"{WEIGHTED}-doubler-v1-predictor", "weight": 90},
        {"name": f"{WEIGHTED}-doubler-v2-predictor", "weight": 10},
    ]
    servers = services[f"{WEIGHTED}-doubler-v1-predictor"]["loadBalancer"]["servers"]
    assert servers == [{"url": "http://127.0.0.1:7001"}, {"url": "http://127.0.0.1:7002"}]


def test_header_requests_are_counted_apart_and_come_first() -> None:
    http = dynamic([made.route({1: 100, 2: 0}, candidate=2)], ENDPOINTS, control_port=1)["http"]
    direct, weighted = http["routers"][f"{DIRECT}-0"], http["routers"][f"{WEIGHTED}-0"]
    assert direct["service"] == DIRECT
    assert "Header(`x-seatrial-arm`, `canary`)" in direct["rule"]
    assert direct["priority"] > weighted["priority"]
    assert f"{DIRECT}-doubler-v2-predictor" in http["services"]
    assert f"{WEIGHTED}-doubler-v2-predictor" in http["services"]


def test_the_weighted_rule_has_one_name_with_and_without_a_candidate() -> None:
    one = dynamic([made.route({1: 100})], ENDPOINTS, control_port=1)["http"]["services"].keys()
    two = dynamic([made.route({1: 100}, candidate=2)], ENDPOINTS, control_port=1)["http"]["services"].keys()
    assert one < two


def test_a_prefix_is_of_whole_path_elements() -> None:
    rule = dynamic([made.route({1: 100})], ENDPOINTS, control_port=1)["http"]["routers"][f"{WEIGHTED}-0"]["rule"]
    assert rule == "(Path(`/v2/models/doubler`) || PathPrefix(`/v2/models/doubler/`))"


def test_a_service_with_no_ready_replica_keeps_its_share_and_has_no_server() -> None:
    services = dynamic([made.route({1: 50, 2: 50})], {**ENDPOINTS, "doubler-v2-predictor": []}, control_port=1)
    assert services["http"]["services"][f"{WEIGHTED}-doubler-v2-predictor"]["loadBalancer"]["servers"] == []


def test_the_share_of_a_service_that_does_not_exist_is_answered_by_the_control_api() -> None:
    services = dynamic([made.route({3: 1})], ENDPOINTS, control_port=4321)["http"]["services"]
    servers = services[f"{WEIGHTED}-doubler-v3-predictor"]["loadBalancer"]["servers"]
    assert servers == [{"url": "http://127.0.0.1:4321"}]


def test_a_route_on_another_gateway_serves_nothing() -> None:
    route = made.route({1: 100})
    route["spec"]["parentRefs"] = [{"name": "elsewhere"}]
    assert dynamic([route], ENDPOINTS, control_port=1) == {}


def test_route_status_names_the_generation_and_the_missing_service() -> None:
    route = made.route({1: 100, 3: 0})
    route["metadata"]["generation"] = 7
    (parent,) = route_status(route, ENDPOINTS, "2026-01-01T00:00:00Z")["parents"]
    conditions = {condition["type"]: condition for condition in parent["conditions"]}
    assert conditions["Accepted"]["observedGeneration"] == 7
    assert conditions["ResolvedRefs"]["status"] == "False"
    assert "doubler-v3-predictor" in conditions["ResolvedRefs"]["message"]
