"""Reads what lies in infra/ without kubectl: resources and namespaces, which is all that the bases use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
INFRA: Final = ROOT / "infra"
BASE: Final = INFRA / "base"
TEMPLATES: Final = ROOT / "workflow_templates"
CLUSTER_WIDE: Final = frozenset(
    {"Namespace", "PriorityClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
)


@dataclass(frozen=True)
class Objects:
    """The objects of a kustomization."""

    all: tuple[dict[str, Any], ...]

    def of(self, kind: str, namespace: str | None = None) -> dict[str, dict[str, Any]]:
        """Name → object of a kind; of one namespace, or of all."""
        return {
            found["metadata"]["name"]: found
            for found in self.all
            if found["kind"] == kind and namespace in {None, found["metadata"].get("namespace")}
        }


def objects(folder: Path) -> Objects:
    """What a folder's kustomization brings, before patches."""
    return Objects(tuple(_objects(folder)))


def documents(path: Path) -> list[dict[str, Any]]:
    """Every document of a YAML file."""
    return [found for found in yaml.safe_load_all(path.read_text(encoding="utf-8")) if found]


def steps() -> list[dict[str, Any]]:
    """Every rendered template that is a container, of all workflow templates."""
    return [template for document in workflows() for template in _templates(document) if "container" in template]


def workflows() -> list[dict[str, Any]]:
    """Every rendered WorkflowTemplate and CronWorkflow."""
    found = (document for path in sorted(TEMPLATES.glob("*.yaml")) for document in documents(path))
    return [document for document in found if document["kind"] in {"WorkflowTemplate", "CronWorkflow"}]


def _templates(document: dict[str, Any]) -> list[dict[str, Any]]:
    spec = document["spec"].get("workflowSpec", document["spec"])
    found: list[dict[str, Any]] = spec.get("templates", [])
    return found


def _objects(folder: Path) -> Iterator[dict[str, Any]]:
    kustomization = documents(folder / "kustomization.yaml")[0]
    namespace = kustomization.get("namespace")
    for resource in kustomization["resources"]:
        path = (folder / resource).resolve()
        for found in _objects(path) if path.is_dir() else documents(path):
            placed = namespace and found["kind"] not in CLUSTER_WIDE
            yield {**found, "metadata": {**found["metadata"], "namespace": namespace}} if placed else found
