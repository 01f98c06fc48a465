"""One contract for everything that keeps InferenceServices and HTTPRoutes: the fakes, the control API through the
real adapters, and, where SEATRIAL_CONTRACT_KUBECONFIG names one, a real API server with the CRDs installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import serving_images as made
from control_server import Api, control_api
from fakes_cluster import MemoryRoutes, MemoryServices

from seatrial.adapters import kubernetes
from seatrial.app.sandbox.control import api as control
from seatrial.app.sandbox.control.kinds import ROUTES as ROUTE_KIND
from seatrial.app.sandbox.control.storage import Objects
from seatrial.app.sandbox.places import write_json
from seatrial.errors import Conflict, IntegrityError, InvalidInput, Unavailable
from seatrial.ports import Routes, Services

DIGEST = "sha256:" + "a" * 64
SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/seatrial/inferenceservices"
ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/seatrial/httproutes"
MERGE = {"content-type": "application/merge-patch+json"}
REAL = os.environ.get("SEATRIAL_CONTRACT_KUBECONFIG", "")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with control_api(tmp_path) as served:
        yield served


@pytest.fixture(params=["memory", "control-api", *(["real"] if REAL else [])])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[Services, Routes]]:
    if request.param == "memory":
        yield MemoryServices(), MemoryRoutes()
        return
    kubeconfig = REAL if request.param == "real" else str(request.getfixturevalue("api").kubeconfig)
    connected = kubernetes.connect("seatrial", kubeconfig)
    yield connected.services, connected.routes
    for name in connected.services.names(made.MODEL):
        connected.services.delete(name)
    if (left := connected.routes.get(made.MODEL)) is not None:
        connected.routes.delete(made.MODEL, resource_version=left["metadata"]["resourceVersion"])


def version_of(found: dict[str, Any] | None) -> str:
    assert found is not None
    return str(found["metadata"]["resourceVersion"])


def test_what_was_created_is_read_back(cluster: tuple[Services, Routes]) -> None:
    services, routes = cluster
    services.create(made.service(1, DIGEST))
    routes.create(made.route({1: 100}))
    service, route = services.get("doubler-v1"), routes.get("doubler")
    assert service is not None
    assert route is not None
    assert kubernetes.contains(service["spec"], made.service(1, DIGEST)["spec"])
    assert kubernetes.contains(route["spec"], made.route({1: 100})["spec"])


def test_nothing_there_is_none(cluster: tuple[Services, Routes]) -> None:
    services, routes = cluster
    assert services.get("doubler-v9") is None
    assert routes.get("doubler-v9") is None
    assert services.names("doubler") == []


def test_the_same_service_twice_is_fine_and_another_under_its_name_is_not(cluster: tuple[Services, Routes]) -> None:
    services, _ = cluster
    services.create(made.service(1, DIGEST))
    services.create(made.service(1, DIGEST))
    with pytest.raises(IntegrityError):
        services.create(made.service(1, "sha256:" + "b" * 64))


def test_services_are_found_by_their_model(cluster: tuple[Services, Routes]) -> None:
    services, _ = cluster
    for version in (2, 1):
        services.create(made.service(version, DIGEST))
    other = made.service(3, DIGEST)
    other["metadata"]["labels"]["seatrial.dev/model"] = "another"
    services.create(other)
    assert services.names("doubler") == ["doubler-v1", "doubler-v2"]
    assert services.names("another") == ["doubler-v3"]
    services.delete("doubler-v3")


def test_a_deleted_service_is_gone_and_deleting_it_again_is_fine(cluster: tuple[Services, Routes]) -> None:
    services, _ = cluster
    services.create(made.service(1, DIGEST))
    services.delete("doubler-v1")
    services.delete("doubler-v1")
    assert services.get("doubler-v1") is None


def test_a_route_whose_name_is_taken_is_a_conflict(cluster: tuple[Services, Routes]) -> None:
    _, routes = cluster
    routes.create(made.route({1: 100}))
    with pytest.raises(Conflict):
        routes.create(made.route({1: 100}))


def test_a_patch_moves_weights_and_annotations_at_once(cluster: tuple[Services, Routes]) -> None:
    _, routes = cluster
    routes.create(made.route({1: 100, 2: 0}))
    before = version_of(routes.get("doubler"))
    patch = {"spec": made.route({1: 90, 2: 10})["spec"], "metadata": {"annotations": {"seatrial.dev/candidate": "2"}}}
    routes.replace("doubler", patch, resource_version=before)
    after = routes.get("doubler")
    assert after is not None
    assert version_of(after) != before
    assert [backend["weight"] for backend in after["spec"]["rules"][-1]["backendRefs"]] == [90, 10]
    owned = {"seatrial.dev/owner": "a-release", "seatrial.dev/candidate": "2"}
    assert after["metadata"]["annotations"] == owned


def test_null_in_a_patch_removes_an_annotation(cluster: tuple[Services, Routes]) -> None:
    _, routes = cluster
    routes.create(made.route({1: 100}))
    patch = {"metadata": {"annotations": {"seatrial.dev/owner": None}}}
    routes.replace("doubler", patch, resource_version=version_of(routes.get("doubler")))
    after = routes.get("doubler")
    assert after is not None
    assert "seatrial.dev/owner" not in after["metadata"].get("annotations", {})


def test_a_stale_patch_is_a_conflict_and_changes_nothing(cluster: tuple[Services, Routes]) -> None:
    _, routes = cluster
    routes.create(made.route({1: 100, 2: 0}))
    stale = version_of(routes.get("doubler"))
    routes.replace("doubler", {"spec": made.route({1: 50, 2: 50})["spec"]}, resource_version=stale)
    with pytest.raises(Conflict):
        routes.replace("doubler", {"spec": made.route({1: 0, 2: 100})["spec"]}, resource_version=stale)
    after = routes.get("doubler")
    assert after is not None
    assert [backend["weight"] for backend in after["spec"]["rules"][-1]["backendRefs"]] == [50, 50]


def test_a_stale_delete_is_a_conflict(cluster: tuple[Services, Routes]) -> None:
    _, routes = cluster
    routes.create(made.route({1: 100, 2: 0}))
    stale = version_of(routes.get("doubler"))
    routes.replace("doubler", {"spec": made.route({1: 50, 2: 50})["spec"]}, resource_version=stale)
    with pytest.raises(Conflict):
        routes.delete("doubler", resource_version=stale)
    routes.delete("doubler", resource_version=version_of(routes.get("doubler")))
    assert routes.get("doubler") is None


def test_changing_what_is_gone_is_a_conflict(cluster: tuple[Services, Routes]) -> None:
    _, routes = cluster
    with pytest.raises(Conflict):
        routes.replace("doubler", {"metadata": {}}, resource_version="1")
    with pytest.raises(Conflict):
        routes.delete("doubler", resource_version="1")


def test_an_unknown_field_is_refused_by_its_path(cluster: tuple[Services, Routes]) -> None:
    services, _ = cluster
    wrong = made.service(1, DIGEST)
    wrong["spec"]["predictor"]["canaryTrafficPercnt"] = 10
    with pytest.raises(InvalidInput, match=r"spec\.predictor\.canaryTrafficPercnt"):
        services.create(wrong)


def status_of(response: httpx.Response) -> tuple[int, str]:
    """HTTP status and reason of a body of kind Status."""
    body = response.json()
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", response.status_code)
    assert body["message"]
    return response.status_code, body["reason"]


def test_a_created_object_carries_the_servers_fields(api: Api) -> None:
    response = api.http.post(SERVICES, json={**made.service(1, DIGEST), "status": {"forged": True}})
    assert response.status_code == 201
    body = response.json()
    assert body["metadata"]["generation"] == 1
    assert {"uid", "resourceVersion", "creationTimestamp"} <= body["metadata"].keys()
    assert "status" not in body


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", f"{SERVICES}/doubler-v1", 404, "NotFound"),
        ("GET", f"{ROUTES}/doubler/status", 404, "NotFound"),
        ("DELETE", f"{ROUTES}/doubler", 404, "NotFound"),
        ("GET", SERVICES.replace("seatrial", "elsewhere"), 404, "NotFound"),
        ("GET", "/apis/apps/v1/namespaces/seatrial/deployments", 404, "NotFound"),
        ("GET", "/api/v1/pods", 404, "NotFound"),
        ("PUT", f"{ROUTES}/doubler", 405, "MethodNotAllowed"),
        ("GET", f"{SERVICES}?watch=true", 405, "MethodNotAllowed"),
        ("GET", f"{SERVICES}?labelSelector=a+in+(b)", 400, "BadRequest"),
    ],
)
def test_what_is_not_there_is_said_in_the_api_servers_words(
    api: Api, method: str, path: str, status: int, reason: str
) -> None:
    assert status_of(api.http.request(method, path)) == (status, reason)


def test_a_taken_name_is_already_exists(api: Api) -> None:
    api.http.post(ROUTES, json=made.route({1: 100}))
    assert status_of(api.http.post(ROUTES, json=made.route({1: 100}))) == (409, "AlreadyExists")


def test_a_patch_of_another_kind_than_merge_is_refused(api: Api) -> None:
    api.http.post(ROUTES, json=made.route({1: 100}))
    assert status_of(api.http.patch(f"{ROUTES}/doubler", json={})) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"metadata": 3}', b"null"])
def test_a_body_that_is_no_object_is_a_bad_request(api: Api, body: bytes) -> None:
    response = api.http.post(ROUTES, content=body, headers={"content-type": "application/json"})
    assert status_of(response) == (400, "BadRequest")


def test_a_patch_that_changes_nothing_moves_no_version(api: Api) -> None:
    created = api.http.post(ROUTES, json=made.route({1: 100})).json()
    patched = api.http.patch(f"{ROUTES}/doubler", json={"spec": created["spec"]}, headers=MERGE).json()
    assert patched["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_generation_moves_with_the_spec_only(api: Api) -> None:
    api.http.post(ROUTES, json=made.route({1: 100}))
    annotated = api.http.patch(f"{ROUTES}/doubler", json={"metadata": {"annotations": {"a": "b"}}}, headers=MERGE)
    assert annotated.json()["metadata"]["generation"] == 1
    shifted = api.http.patch(f"{ROUTES}/doubler", json={"spec": made.route({1: 1})["spec"]}, headers=MERGE)
    assert shifted.json()["metadata"]["generation"] == 2


def test_status_cannot_be_written_through_the_object(api: Api) -> None:
    api.http.post(ROUTES, json=made.route({1: 100}))
    patched = api.http.patch(f"{ROUTES}/doubler", json={"status": {"forged": True}}, headers=MERGE)
    assert "status" not in patched.json()


def test_an_inference_service_never_changes(api: Api) -> None:
    api.http.post(SERVICES, json=made.service(1, DIGEST))
    patch = {"spec": {"predictor": {"minReplicas": 2}}}
    refused = api.http.patch(f"{SERVICES}/doubler-v1", json=patch, headers=MERGE)
    assert status_of(refused) == (422, "Invalid")
    assert refused.json()["details"]["causes"][0]["field"] == "spec"


def test_objects_outlive_the_server(api: Api) -> None:
    created = api.http.post(ROUTES, json=made.route({1: 100})).json()
    again = Objects(api.folder, "seatrial")
    assert again.version == created["metadata"]["resourceVersion"]
    assert [o["metadata"]["uid"] for o in again.list(ROUTE_KIND)] == [created["metadata"]["uid"]]


def with_spec(**predictor: Any) -> dict[str, Any]:
    wrong = made.service(1, DIGEST)
    wrong["spec"]["predictor"] |= predictor
    return wrong


def with_container(**container: Any) -> dict[str, Any]:
    wrong = made.service(1, DIGEST)
    wrong["spec"]["predictor"]["containers"][0] |= container
    return wrong


def with_metadata(**metadata: Any) -> dict[str, Any]:
    wrong = made.service(1, DIGEST)
    wrong["metadata"] |= metadata
    return wrong


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (with_spec(canaryTrafficPercent=10), "spec.predictor.canaryTrafficPercent"),
        ({**made.service(1, DIGEST), "spec": {**made.service(1, DIGEST)["spec"], "canary": []}}, "spec.canary"),
        (with_spec(model={"modelFormat": {"name": "onnx"}}), "spec.predictor.model"),
        (with_spec(onnx={"storageUri": "s3://b"}), "spec.predictor.onnx"),
        (with_spec(minReplicas=0), "spec.predictor.minReplicas"),
        (with_container(image="localhost/seatrial/doubler:v1"), "spec.predictor.containers[0].image"),
        (with_container(storageUri="ftp://x"), "spec.predictor.containers[0].storageUri"),
        (
            with_container(resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
            "spec.predictor.containers[0].resources.requests",
        ),
        (with_container(ports=[{"containerPort": 9, "protocol": "TCP"}]), "spec.predictor.containers[0].startupProbe"),
        (with_metadata(name="m" * 42 + "-v1"), "metadata.name"),
        (with_metadata(name="doubler"), "metadata.name"),
        (
            with_metadata(annotations={"serving.kserve.io/deploymentMode": "Bogus"}),
            "metadata.annotations[serving.kserve.io/deploymentMode]",
        ),
        (
            with_metadata(annotations={"serving.kserve.io/autoscalerClass": "keda"}),
            "metadata.annotations[serving.kserve.io/autoscalerClass]",
        ),
    ],
)
def test_what_kserve_wrongly_accepts_is_refused_by_its_path(api: Api, wrong: dict[str, Any], path: str) -> None:
    refused = api.http.post(SERVICES, json=wrong)
    assert status_of(refused)[0] in {400, 422}
    assert path in refused.json()["message"]
    assert api.http.get(SERVICES).json()["items"] == []


@pytest.mark.parametrize(("kind", "error"), [("409", Conflict), ("429", Unavailable), ("500", Unavailable)])
def test_the_switch_makes_the_next_requests_fail_and_no_more(api: Api, kind: str, error: type[Exception]) -> None:
    routes = kubernetes.connect("seatrial", str(api.kubeconfig)).routes
    routes.create(made.route({1: 100}))
    version = version_of(routes.get("doubler"))
    api.http.post("/faults", json={"kind": kind, "count": 2, "verb": "patch"})
    for _ in range(2):
        with pytest.raises(error):
            routes.replace("doubler", {"metadata": {"annotations": {"a": "b"}}}, resource_version=version)
    routes.replace("doubler", {"metadata": {"annotations": {"a": "b"}}}, resource_version=version)
    assert api.http.get("/faults").json() == {"waiting": []}


def test_a_hanging_api_is_unavailable(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "HANG_S", 1.0)
    monkeypatch.setattr(kubernetes, "_TIME_LIMIT_S", (0.5, 0.2))
    routes = kubernetes.connect("seatrial", str(api.kubeconfig)).routes
    api.http.post("/faults", json={"kind": "hang", "verb": "get"})
    with pytest.raises(Unavailable):
        routes.get("doubler")


@pytest.mark.parametrize("wish", [{}, {"kind": "404"}, {"kind": "500", "count": 0}, {"kind": "500", "verb": "watch"}])
def test_a_fault_that_is_none_is_refused(api: Api, wish: dict[str, Any]) -> None:
    assert status_of(api.http.post("/faults", json=wish)) == (400, "BadRequest")


def test_workflows_are_read_from_the_runners_files(api: Api) -> None:
    workflows = kubernetes.connect("seatrial", str(api.kubeconfig)).workflows
    assert workflows.get("release-1") is None
    write_json(api.runs / "release-1" / "workflow.json", {"kind": "Workflow", "status": {"phase": "Running"}})
    found = workflows.get("release-1")
    assert found is not None
    assert found["status"]["phase"] == "Running"
