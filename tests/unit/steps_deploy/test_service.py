"""The InferenceService of a version."""

from __future__ import annotations

import fakes_release as made
import pytest
import yaml

from seatrial import spec as specs
from seatrial.errors import InvalidInput
from seatrial.objects import InferenceService
from seatrial.ports import Manifest
from steps.deploy_model.service import inference_service

IMAGE = "localhost/seatrial/tea-orders@sha256:" + "a" * 64


def service(image: str = IMAGE, namespace: str = "seatrial", **serving: object) -> Manifest:
    data = made.spec_data()
    data["serving"] |= serving
    spec = specs.parse(yaml.safe_dump(data))
    return inference_service(spec, version=7, image=image, bundle=made.ZERO, namespace=namespace, replicas=2)


def container(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["spec"]["predictor"]["containers"][0]
    return found


def test_it_is_one_that_the_control_api_takes_back() -> None:
    assert InferenceService.model_validate(service()).manifest() == service()


def test_it_is_named_and_labelled_by_model_and_version() -> None:
    metadata = service()["metadata"]
    assert metadata["name"] == "tea-orders-v7"
    assert metadata["labels"] == {
        "seatrial.dev/model": "tea-orders",
        "networking.kserve.io/visibility": "cluster-local",
    }
    assert metadata["annotations"]["serving.kserve.io/deploymentMode"] == "Standard"


def test_readiness_is_that_of_the_version_and_liveness_that_of_the_server() -> None:
    probes = {
        kind: container(service())[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")
    }
    ready = "/v2/models/tea_orders/versions/7/ready"
    assert probes == {"startup": ready, "readiness": ready, "liveness": "/v2/health/live"}


def test_the_startup_probe_allows_what_the_spec_allows() -> None:
    probe = container(service(ready_within_s=90.5))["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 91


def test_it_stops_only_after_the_gateway_has_let_go() -> None:
    manifest = service()
    sleep = container(manifest)["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert sleep > 2
    assert manifest["spec"]["predictor"]["terminationGracePeriodSeconds"] > sleep + 5


def test_requests_equal_limits_and_gpus_are_asked_for_when_wanted() -> None:
    resources = {"cpu": "2", "memory": "3Gi", "gpus": 1, "node_selector": {"no-node-has": "this"}}
    manifest = service(resources=resources)
    amounts = {"cpu": "2", "memory": "3Gi", "nvidia.com/gpu": "1"}
    assert container(manifest)["resources"] == {"requests": amounts, "limits": amounts}
    assert manifest["spec"]["predictor"]["nodeSelector"] == {"no-node-has": "this"}


def test_it_has_shared_memory_no_rights_and_an_account_of_its_own() -> None:
    manifest = service()
    assert {"name": "shm", "mountPath": "/dev/shm"} in container(manifest)["volumeMounts"]
    assert container(manifest)["securityContext"]["runAsNonRoot"] is True
    assert manifest["spec"]["predictor"]["serviceAccountName"] == "seatrial-serving"
    assert manifest["spec"]["predictor"]["automountServiceAccountToken"] is False


def test_it_comes_before_what_trains() -> None:
    assert service()["spec"]["predictor"]["priorityClassName"] == "seatrial-serving"


@pytest.mark.parametrize("image", ["localhost/tea:latest", "localhost/tea@", "localhost/tea@sha256:12", ""])
def test_an_image_without_its_digest_is_refused(image: str) -> None:
    with pytest.raises(InvalidInput, match="image"):
        service(image=image)


def test_a_name_that_kserve_cannot_label_is_refused() -> None:
    with pytest.raises(InvalidInput, match="63"):
        service(namespace="n" * 50)
