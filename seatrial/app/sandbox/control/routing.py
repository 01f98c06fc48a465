"""HTTPRoutes as the gateway's file: pure, from objects and ready replicas to Traefik's dynamic configuration.

Services are named `<namespace>-<route>-<kind><i>-<Service>`, kind `direct` for rules that match a header and `weighted`
for the others, so that header-routed requests are counted apart, whichever place the rule has in the route.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from seatrial.app.sandbox.control.kinds import Manifest
from seatrial.app.sandbox.places import HOST
from seatrial.objects import GATEWAY

HEADER_PRIORITY: Final = 1000
"""More header matches come first among paths of one length. Source: Gateway API, HTTPRouteRule precedence."""


def dynamic(routes: Iterable[Manifest], endpoints: Mapping[str, list[int]], *, control_port: int) -> Manifest:
    """Traefik's dynamic configuration for `routes`.

    Args:
        routes: HTTPRoutes; one that hangs on another Gateway is left out.
        endpoints: Service → ports of its ready replicas. One without any takes its share and answers 503; one that is
            not in here does not exist, and its share is answered 500 (by the control API), as the Gateway API wants it.
        control_port: Of the control API.
    """
    routers: Manifest = {}
    services: Manifest = {}
    for route in routes:
        if all(parent["name"] != GATEWAY for parent in route["spec"]["parentRefs"]):
            continue
        base = f"{route['metadata']['namespace']}-{route['metadata']['name']}"
        for name, rule in _named_rules(base, route):
            weighted = []
            for backend in rule["backendRefs"]:
                service = f"{name}-{backend['name']}"
                services[service] = _load_balancer(endpoints.get(backend["name"]), control_port)
                weighted.append({"name": service, "weight": backend.get("weight", 1)})
            services[name] = {"weighted": {"services": weighted}}
            for index, match in enumerate(rule["matches"]):
                routers[f"{name}-{index}"] = {**_router(match), "service": name, "entryPoints": ["web"]}
    return {"http": {"routers": routers, "services": services}} if routers else {}


def _named_rules(base: str, route: Manifest) -> list[tuple[str, Manifest]]:
    counted = {"direct": 0, "weighted": 0}
    named = []
    for rule in route["spec"]["rules"]:
        kind = "direct" if any(match.get("headers") for match in rule["matches"]) else "weighted"
        named.append((f"{base}-{kind}{counted[kind]}", rule))
        counted[kind] += 1
    return named


def _router(match: Manifest) -> Manifest:
    """A prefix is of whole path elements: /v2/models/a does not match /v2/models/ab."""
    path = match["path"]["value"].rstrip("/")
    headers = match.get("headers", [])
    terms = [f"(Path(`{path}`) || PathPrefix(`{path}/`))" if path else "PathPrefix(`/`)"]
    terms += [f"Header(`{header['name']}`, `{header['value']}`)" for header in headers]
    return {"rule": " && ".join(terms), "priority": 10 + len(path) + HEADER_PRIORITY * len(headers)}


def _load_balancer(ports: list[int] | None, control_port: int) -> Manifest:
    targets = [control_port] if ports is None else ports
    return {"loadBalancer": {"servers": [{"url": f"http://{HOST}:{port}"} for port in targets], "passHostHeader": True}}


def route_status(route: Manifest, services: Iterable[str], now: str) -> Manifest:
    """What the gateway writes into the route; moves at once, and proves nothing about traffic."""
    known = set(services)
    backends = {backend["name"] for rule in route["spec"]["rules"] for backend in rule["backendRefs"]}
    missing = sorted(backends - known)
    generation = route["metadata"]["generation"]
    before = {
        (condition["type"], condition["status"]): condition["lastTransitionTime"]
        for parent in (route.get("status") or {}).get("parents", [])
        for condition in parent["conditions"]
    }
    resolved = ("False", "BackendNotFound", f"not found: {missing}") if missing else ("True", "ResolvedRefs", "")
    conditions = [
        {
            "type": kind,
            "status": holds,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": before.get((kind, holds), now),
        }
        for kind, (holds, reason, message) in (("Accepted", ("True", "Accepted", "")), ("ResolvedRefs", resolved))
    ]
    return {
        "parents": [
            {"parentRef": parent, "controllerName": "traefik.io/gateway-controller", "conditions": conditions}
            for parent in route["spec"]["parentRefs"]
            if parent["name"] == GATEWAY
        ]
    }
