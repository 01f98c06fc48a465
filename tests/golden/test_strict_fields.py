"""Every key of the rendered YAML is a field of Hera's models of Argo 4.0.5, which themselves let unknown keys pass."""

from __future__ import annotations

import typing
from pathlib import Path
from types import UnionType
from typing import Any

import pytest
import yaml
from hera.workflows import models as m
from pydantic import BaseModel

TEMPLATES = Path(__file__).resolve().parents[2] / "workflow_templates"


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field's value may be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        root = annotation.model_fields.get("root")
        return models_in(root.annotation) if root is not None else [annotation]
    if isinstance(annotation, UnionType) or typing.get_origin(annotation) is not None:
        return [model for argument in typing.get_args(annotation) for model in models_in(argument)]
    return []


def is_map(annotation: Any) -> bool:
    """Whether the keys are the user's own (labels, hooks, resources)."""
    root = (
        annotation.model_fields.get("root")
        if isinstance(annotation, type) and issubclass(annotation, BaseModel)
        else None
    )
    if root is not None:
        return is_map(root.annotation)
    return typing.get_origin(annotation) is dict or any(is_map(a) for a in typing.get_args(annotation))


def unknown(value: Any, annotation: Any, path: str) -> list[str]:
    """The paths in `value` that no model knows."""
    if isinstance(value, list):
        return [fault for i, item in enumerate(value) for fault in unknown(item, annotation, f"{path}[{i}]")]
    if not isinstance(value, dict):
        return []
    if is_map(annotation):
        return [
            fault for key, item in value.items() for fault in unknown(item, models_union(annotation), f"{path}.{key}")
        ]
    models = models_in(annotation)
    if not models:
        return [path] if value else []
    return min((_against(value, model, path) for model in models), key=len)


def models_union(annotation: Any) -> Any:
    models = models_in(annotation)
    return models[0] if models else str


def _against(value: dict[str, Any], model: type[BaseModel], path: str) -> list[str]:
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    faults = []
    for key, item in value.items():
        place = f"{path}.{key}"
        faults += unknown(item, fields[key], place) if key in fields else [place]
    return faults


KINDS: dict[str, type[BaseModel]] = {"WorkflowTemplate": m.WorkflowTemplate, "CronWorkflow": m.CronWorkflow}


def documents() -> list[Any]:
    read = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(TEMPLATES.glob("*.yaml"))}
    return [pytest.param(one, id=name) for name, one in read.items() if one["kind"] != "Kustomization"]


@pytest.mark.parametrize("document", documents())
def test_every_key_is_a_field_of_argo(document: Any) -> None:
    assert unknown(document, KINDS[document["kind"]], "") == []


@pytest.mark.parametrize("document", documents())
def test_every_value_is_of_its_fields_type(document: Any) -> None:
    KINDS[document["kind"]].model_validate(document)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: d["spec"].update(onExi="x"), ".spec.onExi"),
        (lambda d: d["spec"]["templates"][4].update(timeOut="1s"), ".spec.templates[4].timeOut"),
        (lambda d: d["spec"]["templates"][4]["container"]["resources"].update(limit={}), "resources.limit"),
        (lambda d: d["spec"]["templates"][4]["retryStrategy"]["backoff"].update(max="1"), "backoff.max"),
        (lambda d: d["spec"]["hooks"]["exit"].update(templat="x"), ".spec.hooks.exit.templat"),
        (lambda d: d["spec"]["templates"][0]["dag"]["tasks"][0].update(dependson="x"), "tasks[0].dependson"),
    ],
)
def test_a_misspelt_field_is_found(change: Any, path: str) -> None:
    document = yaml.safe_load((TEMPLATES / "release.yaml").read_text())
    change(document)
    faults = unknown(document, m.WorkflowTemplate, "")
    assert len(faults) == 1
    assert faults[0].endswith(path)


def test_a_misspelt_field_of_the_cron_workflow_is_found() -> None:
    document = yaml.safe_load((TEMPLATES / "settle.yaml").read_text())
    document["spec"]["concurrency"] = "Forbid"
    assert unknown(document, m.CronWorkflow, "") == [".spec.concurrency"]
