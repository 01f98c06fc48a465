"""Requests about the two kinds that the control API knows, and what of each answer is worth keeping.

The same list is sent to a real API server with KServe's webhooks, whose answers are kept in recorded.json, and to the
sandbox's control API, which must answer alike. What is kept of an answer: its HTTP status, the Status' reason, the
generation, whether the resourceVersion moved, whether the object says what was asked for, and the names in a list.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import serving_images as made

from seatrial.adapters.kubernetes import contains

SERVICES: Final = "/apis/serving.kserve.io/v1beta1/namespaces/{namespace}/inferenceservices"
ROUTES: Final = "/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/httproutes"
STRICT: Final = {"fieldValidation": "Strict"}
MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json"
DIGEST: Final = "sha256:" + "a" * 64
ROUTE: Final = f"{ROUTES}/{made.MODEL}"
SERVICE: Final = f"{SERVICES}/{made.MODEL}-v1"

GONE_WITHIN_S: Final = 20.0

Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request; `$current` and `$stale` in its body stand for resourceVersions of the object at its path."""

    name: str
    method: str
    path: str
    body: Any = None
    media_type: str = JSON
    query: Mapping[str, str] = field(default_factory=dict)


def exchanges(namespace: str) -> list[Exchange]:
    """All of them, in the order in which they are sent; the last ones leave nothing behind."""
    return [*_services(namespace), *_routes(namespace), *_bad_requests(namespace), *_wrong_services(namespace)]


def answers(client: httpx.Client, namespace: str) -> dict[str, Answer]:
    """Send them all; exchange → what is kept of its answer."""
    versions: dict[str, list[str]] = {}
    kept: dict[str, Answer] = {}
    for exchange in exchanges(namespace):
        path = exchange.path.format(namespace=namespace)
        known = versions.setdefault(_object(path, exchange.body), [])
        content = _content(exchange.body, known)
        response = client.request(
            exchange.method,
            path,
            content=content,
            params=dict(exchange.query),
            headers={"content-type": exchange.media_type},
        )
        kept[exchange.name] = _kept(exchange, response, known)
        if exchange.method == "DELETE" and response.status_code < 400:
            _wait_until_gone(client, path)
    return kept


def _wait_until_gone(client: httpx.Client, path: str) -> None:
    """A finalizer of KServe's keeps a deleted service for a moment."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while client.get(path).status_code != 404:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} is still there")
        time.sleep(0.05)


def _services(namespace: str) -> Iterator[Exchange]:
    service = _service(namespace)
    yield Exchange(name="no-service", method="GET", path=SERVICE)
    yield Exchange(name="list-no-services", method="GET", path=SERVICES)
    yield Exchange(name="create-service", method="POST", path=SERVICES, body=service, query=STRICT)
    yield Exchange(name="create-service-again", method="POST", path=SERVICES, body=service, query=STRICT)
    yield Exchange(name="get-service", method="GET", path=SERVICE)
    selected = {"labelSelector": f"seatrial.dev/model={made.MODEL}"}
    yield Exchange(name="list-services-by-label", method="GET", path=SERVICES, query=selected)
    unselected = {"labelSelector": "seatrial.dev/model=another"}
    yield Exchange(name="list-services-by-other-label", method="GET", path=SERVICES, query=unselected)
    patch = {"spec": {"predictor": {"minReplicas": 2}}}
    yield Exchange(name="patch-service-spec", method="PATCH", path=SERVICE, body=patch, media_type=MERGE, query=STRICT)
    yield Exchange(name="delete-service", method="DELETE", path=SERVICE)
    yield Exchange(name="delete-service-again", method="DELETE", path=SERVICE)


def _routes(namespace: str) -> Iterator[Exchange]:
    def patched(name: str, body: Any, media_type: str = MERGE) -> Exchange:
        return Exchange(name=name, method="PATCH", path=ROUTE, body=body, media_type=media_type, query=STRICT)

    def at(version: str, patch: dict[str, Any]) -> dict[str, Any]:
        return {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}

    route, shifted = _route(namespace, {1: 100}), {"spec": _route(namespace, {1: 90, 2: 10})["spec"]}
    annotated = {"metadata": {"annotations": {"seatrial.dev/owner": "another"}}}
    yield patched("patch-no-route", shifted)
    yield Exchange(name="no-route", method="GET", path=ROUTE)
    yield Exchange(name="create-route", method="POST", path=ROUTES, body=route, query=STRICT)
    yield Exchange(name="create-route-again", method="POST", path=ROUTES, body=route, query=STRICT)
    yield patched("shift", at("$current", shifted))
    yield patched("shift-to-the-same", at("$current", shifted))
    yield patched("shift-stale", at("$stale", {"spec": route["spec"]}))
    yield patched("annotate", at("$current", annotated))
    yield patched("remove-annotation", {"metadata": {"annotations": {"seatrial.dev/owner": None}}})
    yield patched("json-patch-of-nothing", [], "application/json")
    yield patched("patch-unknown-field", {"spec": {"ruls": []}})
    yield patched("patch-weight-below-zero", {"spec": _route(namespace, {1: -1})["spec"]})
    yield patched("patch-weight-too-large", {"spec": _route(namespace, {1: 1_000_001})["spec"]})
    yield patched("patch-no-rules", {"spec": {"rules": []}})
    yield Exchange(name="get-route", method="GET", path=ROUTE)
    for name, version in (("delete-route-stale", "$stale"), ("delete-route", "$current")):
        options = {"preconditions": {"resourceVersion": version}}
        yield Exchange(name=name, method="DELETE", path=ROUTE, body=options)
    yield Exchange(name="delete-route-again", method="DELETE", path=ROUTE)


def _bad_requests(namespace: str) -> Iterator[Exchange]:
    for name, body in (("empty", b""), ("half", b"{"), ("a-list", b"[]"), ("null", b"null"), ("no-metadata", b"{}")):
        yield Exchange(name=f"body-{name}", method="POST", path=ROUTES, body=body)
    yield Exchange(name="other-namespace-than-the-path", method="POST", path=ROUTES, query=STRICT,
                   body=_route("elsewhere", {1: 100}))  # fmt: skip
    yield Exchange(name="other-kind-than-the-path", method="POST", path=ROUTES, query=STRICT, body=_service(namespace))
    misspelt = _route(namespace, {1: 100})
    misspelt["spec"]["ruless"] = []
    yield Exchange(name="route-with-unknown-field", method="POST", path=ROUTES, body=misspelt, query=STRICT)
    selector = {"labelSelector": "a in (b"}
    yield Exchange(name="bad-selector", method="GET", path=SERVICES, query=selector)
    yield Exchange(name="put-no-route", method="PUT", path=ROUTE, body=_route(namespace, {1: 100}))


def _wrong_services(namespace: str) -> Iterator[Exchange]:
    """What nobody should get served; each is deleted where it was accepted."""
    wrong: dict[str, dict[str, Any]] = {
        "unknown-field": {"canaryTrafficPercnt": 10},
        "canary-traffic-percent": {"canaryTrafficPercent": 10},
        "model-format": {"model": {"modelFormat": {"name": "onnx"}}},
        "legacy-framework": {"onnx": {"storageUri": "s3://b/m"}},
        "no-replicas": {"minReplicas": 0},
        "more-min-than-max-replicas": {"minReplicas": 3, "maxReplicas": 2},
        "no-container": {"containers": []},
    }
    for name, predictor in wrong.items():
        service = _service(namespace)
        service["spec"]["predictor"] |= predictor
        yield from _tried(name, service)
    for name, container in {
        "image-by-tag": {"image": "localhost/seatrial/doubler:v1"},
        "more-requested-than-limit": {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}},
        "port-that-is-none": {"ports": [{"containerPort": 70_000, "protocol": "TCP"}]},
    }.items():
        service = _service(namespace)
        service["spec"]["predictor"]["containers"][0] |= container
        yield from _tried(name, service)
    for name, metadata in {
        "name-too-long": {"name": "m" * 61 + "-v1"},
        "name-in-capitals": {"name": "Doubler-v1"},
        "bogus-deployment-mode": {"annotations": {"serving.kserve.io/deploymentMode": "Bogus"}},
        "autoscaler-without-its-crd": {"annotations": {"serving.kserve.io/autoscalerClass": "keda"}},
    }.items():
        service = _service(namespace)
        service["metadata"] |= metadata
        yield from _tried(name, service)


def _tried(name: str, service: dict[str, Any]) -> Iterator[Exchange]:
    yield Exchange(name=f"service-{name}", method="POST", path=SERVICES, body=service, query=STRICT)
    yield Exchange(name=f"service-{name}:away", method="DELETE", path=f"{SERVICES}/{service['metadata']['name']}")


def _service(namespace: str) -> dict[str, Any]:
    service: dict[str, Any] = made.service(1, DIGEST, namespace=namespace)
    service["spec"]["predictor"].pop("nodeSelector")
    return service


def _route(namespace: str, weights: dict[int, int]) -> dict[str, Any]:
    route: dict[str, Any] = made.route(weights, namespace=namespace)
    return route


def _object(path: str, body: Any) -> str:
    """The path of the object that a request is about."""
    metadata = body.get("metadata", {}) if isinstance(body, dict) else {}
    collection = path.rpartition("/")[2] in {"inferenceservices", "httproutes"}
    return f"{path}/{metadata['name']}" if collection and "name" in metadata else path


def _content(body: Any, versions: list[str]) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    text = json.dumps(body)
    for name, version in {"$current": versions[-1:], "$stale": versions[:1]}.items():
        text = text.replace(f'"{name}"', json.dumps(version[0] if version else "1"))
    return text.encode()


def _kept(exchange: Exchange, response: httpx.Response, versions: list[str]) -> Answer:
    document = response.json()
    answer: Answer = {"status": response.status_code}
    if exchange.method == "DELETE" and response.status_code < 400:
        return answer
    if document.get("kind") == "Status":
        return {**answer, **({"reason": document.get("reason")} if response.status_code >= 400 else {})}
    if "items" in document:
        return {**answer, "names": sorted(item["metadata"]["name"] for item in document["items"])}
    metadata = document["metadata"]
    answer["generation"] = metadata["generation"]
    if "httproutes" in exchange.path:  # KServe's controller writes to its own objects at any time
        answer["moved"] = versions[-1:] != [metadata["resourceVersion"]]
    if isinstance(exchange.body, dict):
        asked = {key: exchange.body[key] for key in ("spec",) if key in exchange.body}
        answer["says_what_was_asked"] = contains(document, asked)
    answer["annotations"] = {
        key: value for key, value in sorted(metadata.get("annotations", {}).items()) if key.startswith("seatrial.dev/")
    }
    if versions[-1:] != [metadata["resourceVersion"]]:
        versions.append(metadata["resourceVersion"])
    return answer
