"""Settings: what an operator forgets is refused by name, and overlays set what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kustomization import BASE, INFRA, documents, objects, steps, workflows

from seatrial.adapters import gateway, git, keys, kubernetes, mlflow, registry, s3
from seatrial.app.sandbox import environment
from seatrial.app.sandbox.places import PORTS, Home
from seatrial.errors import InvalidInput

SETTINGS = {
    name: found["data"] for name, found in objects(BASE).of("ConfigMap").items() if name != "artifact-repositories"
}
ON_A_LAPTOP_ONLY = {"KUBECONFIG", "SEATRIAL_IMAGES"}


def everything() -> dict[str, str]:
    return {key: value for data in SETTINGS.values() for key, value in data.items()}


def test_a_cluster_sets_what_a_laptop_sets(tmp_path: Path) -> None:
    ports = {name: 21_000 + index for index, name in enumerate(PORTS)}
    here = environment.environment(Home(tmp_path), ports, source=Path("/s"), base="b", triton=Path("/t"))
    wanted = {name: set(values) - ON_A_LAPTOP_ONLY for name, values in here.items() if name in SETTINGS}
    assert {name: set(values) for name, values in SETTINGS.items()} == wanted


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (s3.from_environment, "SEATRIAL_STORE"),
        (gateway.from_environment, "SEATRIAL_GATEWAY_URL, SEATRIAL_GATEWAY_METRICS_URL not set"),
        (keys.trusted_keys, "SEATRIAL_TRUSTED_KEYS"),
        (registry.from_environment, "SEATRIAL_REGISTRY"),
        (git.from_environment, "SEATRIAL_SOURCE"),
        (git.step_images, "SEATRIAL_STEP_IMAGES"),
        (lambda _: mlflow.from_environment(), "MLFLOW_TRACKING_URI"),
    ],
)
def test_a_setting_that_was_forgotten_is_refused_by_name(
    read: Callable[[dict[str, str]], object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in everything().items():
        monkeypatch.setenv(key, value)
    with pytest.raises(InvalidInput, match=says):
        read(everything())


def test_a_serving_base_that_was_forgotten_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_SERVING_BASE"):
        registry.from_environment({**everything(), "SEATRIAL_REGISTRY": "registry.example/models"})


def test_the_namespaces_are_those_of_the_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    namespaces = objects(BASE).of("Namespace").keys()
    settings = SETTINGS["seatrial-cluster"]
    assert {settings["SEATRIAL_NAMESPACE"], settings["SEATRIAL_WORKFLOWS_NAMESPACE"]} == namespaces
    monkeypatch.setenv("SEATRIAL_REPLICAS_MIN", settings["SEATRIAL_REPLICAS_MIN"])
    assert kubernetes.replicas_min() == 2


def patched(overlay: str, kind: str, name: str) -> dict[str, Any]:
    """What an overlay says of one object."""
    folder = INFRA / "overlays" / overlay
    patches = documents(folder / "kustomization.yaml")[0]["patches"]
    (found,) = (
        found
        for patch in patches
        for found in documents(folder / patch["path"])
        if (found["kind"], found["metadata"]["name"]) == (kind, name)
    )
    return found


@pytest.mark.parametrize(("overlay", "replicas", "replay"), [("dev", "1", "true"), ("prod", "2", "false")])
def test_only_production_has_two_replicas_and_wants_real_traffic(overlay: str, replicas: str, replay: str) -> None:
    assert patched(overlay, "ConfigMap", "seatrial-cluster")["data"] == {"SEATRIAL_REPLICAS_MIN": replicas}
    promote = patched(overlay, "ConfigMap", "seatrial-gateway")["data"]["SEATRIAL_PROMOTE_ON_REPLAY"]
    assert promote == replay


def test_in_production_callers_come_by_tls_only() -> None:
    listeners = patched("prod", "Gateway", "seatrial")["spec"]["listeners"]
    assert [(one["protocol"], one["tls"]["mode"]) for one in listeners] == [("HTTPS", "Terminate")]


def test_production_names_every_image_by_digest_and_none_that_could_be_pulled_by_mistake() -> None:
    named = documents(INFRA / "overlays/prod/kustomization.yaml")[0]["images"]
    assert sorted(one["name"] for one in named) == sorted({t["container"]["image"] for t in steps()})
    assert all(one["newName"] == f"registry.invalid/{one['name']}" for one in named)
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one["digest"]) for one in named)


def test_images_are_found_in_every_kind_that_is_rendered() -> None:
    fields = documents(INFRA / "overlays/prod/image-fields.yaml")[0]["images"]
    paths = {one["kind"]: one["path"] for one in fields}
    assert {document["kind"] for document in workflows()} <= paths.keys()
    assert paths == {
        "WorkflowTemplate": "spec/templates[]/container/image",
        "CronWorkflow": "spec/workflowSpec/templates[]/container/image",
    }


def test_a_patch_sets_only_settings_that_the_base_knows() -> None:
    for overlay in ("dev", "prod"):
        for found in documents(INFRA / "overlays" / overlay / "settings.yaml"):
            name = found["metadata"]["name"]
            known = {"store"} if name == "artifact-repositories" else SETTINGS[name].keys()
            assert found["data"].keys() <= known


def test_production_keeps_the_layout_of_artifacts() -> None:
    base = yaml.safe_load(objects(BASE).of("ConfigMap")["artifact-repositories"]["data"]["store"])
    prod = yaml.safe_load(patched("prod", "ConfigMap", "artifact-repositories")["data"]["store"])
    place = {"bucket", "endpoint", "region"}
    assert {key: value for key, value in prod["s3"].items() if key not in place} == {
        key: value for key, value in base["s3"].items() if key not in place
    }
    assert prod["archiveLogs"] is base["archiveLogs"] is True
