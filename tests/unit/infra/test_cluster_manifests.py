"""What of the projects' own manifests is changed, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.cluster import argo, kserve


def deployment(name: str, image: str) -> dict[str, Any]:
    container = {"name": name, "image": image, "args": ["old"], "env": [{"name": "KEPT", "value": "1"}]}
    return {
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


@pytest.fixture
def installed() -> dict[str, dict[str, Any]]:
    given = [
        {"kind": "ConfigMap", "metadata": {"name": "workflow-controller-configmap"}},
        deployment("workflow-controller", "quay.io/argoproj/workflow-controller:latest"),
        deployment("argo-server", "quay.io/argoproj/argocli:latest"),
    ]
    return {found["metadata"]["name"]: found for found in argo.for_this_cluster(given, "v4.0.5")}


def container(found: dict[str, Any]) -> dict[str, Any]:
    (only,) = found["spec"]["template"]["spec"]["containers"]
    return dict(only)


def test_argos_images_are_the_ones_made_here(installed: dict[str, dict[str, Any]]) -> None:
    controller, server = container(installed["workflow-controller"]), container(installed["argo-server"])
    assert controller["image"] == "localhost/workflow-controller:v4.0.5"
    assert server["image"] == "localhost/argocli:v4.0.5"
    assert controller["imagePullPolicy"] == server["imagePullPolicy"] == "Never"
    assert "--executor-image=localhost/argoexec:v4.0.5" in controller["args"]


def test_two_controllers_never_overlap_as_none_is_elected(installed: dict[str, dict[str, Any]]) -> None:
    found = installed["workflow-controller"]
    assert {"name": "LEADER_ELECTION_DISABLE", "value": "true"} in container(found)["env"]
    assert found["spec"]["strategy"] == {"type": "Recreate"}
    assert {"name": "KEPT", "value": "1"} in container(found)["env"]


def test_where_artifacts_go_is_not_said_by_the_cluster(installed: dict[str, dict[str, Any]]) -> None:
    assert "data" not in installed["workflow-controller-configmap"]


def test_an_image_that_is_not_known_is_refused() -> None:
    with pytest.raises(KeyError):
        argo.for_this_cluster([deployment("argo-server", "elsewhere/argocli:latest")], "v4.0.5")


def kserve_config(folder: Path) -> Path:
    data = {
        "_example": "long",
        "deploy": json.dumps({"defaultDeploymentMode": "Knative", "other": 1}),
        "ingress": json.dumps({"enableGatewayApi": False, "urlScheme": "http"}),
        "agent": "kept",
    }
    file = folder / "configmap" / "inferenceservice.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}))
    return folder


def test_kserve_runs_in_standard_mode_behind_the_gateway_api(tmp_path: Path) -> None:
    _, found = kserve.defaults(kserve_config(tmp_path))
    assert json.loads(found["data"]["deploy"]) == {"defaultDeploymentMode": "Standard", "other": 1}
    ingress = json.loads(found["data"]["ingress"])
    assert ingress["enableGatewayApi"] is True
    assert ingress["disableIstioVirtualHost"] is True
    assert ingress["urlScheme"] == "http"
    assert "_example" not in found["data"]
    assert found["metadata"]["namespace"] == "kserve"


def test_a_webhook_of_a_service_becomes_one_of_a_url_with_the_same_path() -> None:
    hook = {"name": "h", "failurePolicy": "Fail", "clientConfig": {"service": {"name": "s", "path": "/validate"}}}
    document = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v", "x": None}, "webhooks": [hook]}
    (made,) = kserve.by_url([document], url="https://127.0.0.1:1", authority=b"PEM")
    assert made["webhooks"][0]["clientConfig"] == {"url": "https://127.0.0.1:1/validate", "caBundle": "UEVN"}
    assert made["webhooks"][0]["failurePolicy"] == "Fail"
    assert made["metadata"] == {"name": "v"}
