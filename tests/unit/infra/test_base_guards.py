"""What stands around the pods: limits, priorities, networks, budgets, and that every name that is used exists."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes_release as made
import pytest
import yaml
from kustomization import BASE, documents, objects, steps, workflows

from pipelines._build import PRIORITY_CLASS, ROLL_OUT_PRIORITY_CLASS, STEP_LABEL
from seatrial import objects as ours
from seatrial import spec as specs
from seatrial.adapters.kubernetes import MODEL_LABEL
from steps.deploy_model import service

BASE_OBJECTS = objects(BASE)
WORKFLOWS, SERVING = "seatrial", "seatrial-serving"
NOBODYS = ipaddress.ip_network("192.0.2.0/24")
OPTIONAL = {"seatrial-source-credentials", "seatrial-registry-credentials"}
MADE_BY_HAND = {"seatrial-store-credentials", "seatrial-signing-key"}


def version() -> dict[str, Any]:
    """The InferenceService of some version."""
    spec = specs.parse(yaml.safe_dump(made.spec_data()))
    image = "localhost/a@sha256:" + "a" * 64
    return service.inference_service(spec, version=1, image=image, bundle=made.ZERO, namespace=SERVING, replicas=1)


def sources(template: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Kind, name and whether it may be missing, of all that a step's pod takes its environment and files from."""
    for source in template["container"].get("envFrom", []):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field in source:
                yield kind, source[field]["name"], source[field].get("optional", False)
    for volume in template.get("volumes", []):
        if "secret" in volume:
            yield "Secret", volume["secret"]["secretName"], volume["secret"].get("optional", False)
        if "configMap" in volume:
            yield "ConfigMap", volume["configMap"]["name"], volume["configMap"].get("optional", False)


def used() -> set[tuple[str, str, bool]]:
    return {source for template in steps() for source in sources(template)}


def test_every_config_map_that_a_step_reads_is_in_the_base() -> None:
    named = {name for kind, name, _ in used() if kind == "ConfigMap"}
    there = BASE_OBJECTS.of("ConfigMap", WORKFLOWS).keys()
    assert named <= there
    assert there - named == {"artifact-repositories"}


def test_every_secret_that_a_step_reads_is_explained_and_none_is_in_the_base() -> None:
    named = {(name, optional) for kind, name, optional in used() if kind == "Secret"}
    assert named == {(name, True) for name in OPTIONAL} | {(name, False) for name in MADE_BY_HAND}
    explained = (BASE / "workflows" / "settings.yaml").read_text()
    assert all(name in explained for name, _ in named)
    secrets = [found for found in BASE_OBJECTS.all if found["kind"] == "Secret"]
    assert not [found for found in secrets if {"data", "stringData"} & found.keys()]


def test_artifacts_go_to_the_store_by_run_and_pod_with_the_stores_credentials() -> None:
    found = BASE_OBJECTS.of("ConfigMap", WORKFLOWS)["artifact-repositories"]
    key = found["metadata"]["annotations"]["workflows.argoproj.io/default-artifact-repository"]
    repository = yaml.safe_load(found["data"][key])
    assert repository["archiveLogs"] is True
    assert repository["s3"]["keyFormat"] == "runs/{{workflow.name}}/{{workflow.uid}}/{{pod.name}}"
    assert {repository["s3"][f"{kind}KeySecret"]["name"] for kind in ("access", "secret")} == {
        "seatrial-store-credentials"
    }


def test_serving_comes_before_rolling_out_and_that_before_training() -> None:
    classes = BASE_OBJECTS.of("PriorityClass")
    order = [service.PRIORITY_CLASS, ROLL_OUT_PRIORITY_CLASS, PRIORITY_CLASS]
    assert classes.keys() == set(order)
    assert sorted(order, key=lambda name: -classes[name]["value"]) == order
    assert classes[PRIORITY_CLASS]["preemptionPolicy"] == "Never"
    assert not [name for name in classes if classes[name].get("globalDefault")]


def test_every_priority_class_that_is_named_exists() -> None:
    named = {template["priorityClassName"] for template in steps() if "priorityClassName" in template}
    for document in workflows():
        spec = document["spec"].get("workflowSpec", document["spec"])
        named |= {spec["podPriorityClassName"]} if "podPriorityClassName" in spec else set()
    named.add(version()["spec"]["predictor"]["priorityClassName"])
    assert named <= BASE_OBJECTS.of("PriorityClass").keys()


def test_what_changes_who_serves_waits_for_nobodys_training() -> None:
    (quota,) = BASE_OBJECTS.of("ResourceQuota", WORKFLOWS).values()
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert scope == {"scopeName": "PriorityClass", "operator": "In", "values": [PRIORITY_CLASS]}
    first = {t["name"] for t in steps() if t.get("priorityClassName") == ROLL_OUT_PRIORITY_CLASS}
    assert first >= {"deploy-model", "run-canary", "settle-release"}
    assert not first & {"train-model", "validate-data", "evaluate-model", "package-model", "build-image"}


@pytest.mark.parametrize("namespace", [WORKFLOWS, SERVING])
def test_a_namespace_is_limited_and_shut(namespace: str) -> None:
    assert BASE_OBJECTS.of("ResourceQuota", namespace)
    (defaults,) = BASE_OBJECTS.of("LimitRange", namespace).values()
    (containers,) = defaults["spec"]["limits"]
    assert {"cpu", "memory"} == containers["default"].keys() == containers["defaultRequest"].keys()
    shut = BASE_OBJECTS.of("NetworkPolicy", namespace)["default-deny"]["spec"]
    assert shut == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize(("namespace", "level"), [(WORKFLOWS, "baseline"), (SERVING, "restricted")])
def test_a_namespace_says_how_much_a_pod_may(namespace: str, level: str) -> None:
    labels = BASE_OBJECTS.of("Namespace")[namespace]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == level
    assert labels["pod-security.kubernetes.io/warn"] == "restricted"


def reaches(policy: str) -> set[str]:
    """The steps that a policy of the workflows' namespace lets out."""
    selector = BASE_OBJECTS.of("NetworkPolicy", WORKFLOWS)[policy]["spec"]["podSelector"]
    chosen = {template["metadata"]["labels"][STEP_LABEL] for template in steps()}
    if STEP_LABEL in selector.get("matchLabels", {}):
        chosen = {selector["matchLabels"][STEP_LABEL]}
    for expression in selector.get("matchExpressions", []):
        assert expression["key"] == STEP_LABEL
        chosen = chosen if expression["operator"] == "Exists" else set(expression["values"])
    return chosen


def test_a_step_reaches_what_its_contract_needs_and_nothing_else() -> None:
    everyone = {template["metadata"]["labels"][STEP_LABEL] for template in steps()}
    by_config = {
        name: {t["metadata"]["labels"][STEP_LABEL] for t in steps() if ("ConfigMap", name, False) in set(sources(t))}
        for name in ("seatrial-gateway", "seatrial-tracking", "seatrial-source")
    }
    assert reaches("to-store") == reaches("to-api-server") == everyone
    assert reaches("to-tracking") == by_config["seatrial-tracking"] == {"train-model"}
    assert reaches("to-source") == by_config["seatrial-source"] == {"resolve-release"}
    assert reaches("to-gateway") >= by_config["seatrial-gateway"]
    assert reaches("to-gateway") - by_config["seatrial-gateway"] <= {"settle"}
    assert reaches("to-registry") == {"build-image", "deploy-model"}


def test_an_address_that_was_not_set_is_nobodys() -> None:
    for path in (BASE / "workflows" / "network.yaml", BASE.parent / "overlays" / "prod" / "network.yaml"):
        blocks = list(_blocks(documents(path)))
        assert len(blocks) == 5
        assert all(ipaddress.ip_network(block).subnet_of(NOBODYS) for block in blocks)  # type: ignore[arg-type]


def _blocks(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "cidr" in value:
            yield value["cidr"]
        for inner in value.values():
            yield from _blocks(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _blocks(inner)


def test_triton_is_asked_by_the_gateway_on_its_port_and_asks_nobody() -> None:
    policies = BASE_OBJECTS.of("NetworkPolicy", SERVING)
    assert policies.keys() == {"default-deny", "from-gateway"}
    (rule,) = policies["from-gateway"]["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": service.HTTP}]
    assert "egress" not in policies["from-gateway"]["spec"]


def test_one_budget_holds_for_every_version() -> None:
    (budget,) = BASE_OBJECTS.of("PodDisruptionBudget", SERVING).values()
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert budget["spec"]["selector"] == {"matchExpressions": [{"key": MODEL_LABEL, "operator": "Exists"}]}
    assert MODEL_LABEL in version()["metadata"]["labels"]


def test_the_gateway_is_the_one_that_routes_hang_on() -> None:
    gateway = BASE_OBJECTS.of("Gateway", SERVING)[ours.GATEWAY]
    (listener,) = gateway["spec"]["listeners"]
    assert listener["allowedRoutes"] == {"namespaces": {"from": "Same"}}


def test_a_file_that_no_kustomization_names_is_an_oversight() -> None:
    for folder in (BASE, BASE / "workflows", BASE / "serving", *(BASE.parent / "overlays").iterdir()):
        named = _named(folder)
        assert {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"} == named


def _named(folder: Path) -> set[str]:
    kustomization = documents(folder / "kustomization.yaml")[0]
    paths = [*kustomization["resources"], *(patch["path"] for patch in kustomization.get("patches", []))]
    paths += kustomization.get("configurations", [])
    return {Path(path).name for path in paths if path.endswith(".yaml")}
