"""The release as somebody would write it by hand: the same containers in one flat DAG, and nothing of ours around them.

Gone are retries, deadlines, the mutex, nested DAGs with outputs of their own, conditions, pod patches, priorities.
What stays is what the containers need: arguments, artifacts, accounts, volumes, resources, security contexts.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

KEPT = (
    "name", "container", "inputs", "outputs", "volumes", "securityContext",
    "serviceAccountName", "automountServiceAccountToken", "executor",
)  # fmt: skip
"""Fields of a step's template. The namespace's pod security asks for the security context: without it no pod starts."""
PARTS = ("build-candidate", "roll-out")


def plain(template: Mapping[str, Any], *, parameters: Mapping[str, str]) -> dict[str, Any]:
    """A Workflow that runs the containers of the WorkflowTemplate `release`, as it is installed.

    Args:
        template: The WorkflowTemplate, with its images by digest.
        parameters: Name → value, in the place of the template's own.
    """
    spec = copy.deepcopy(dict(template["spec"]))
    templates = {one["name"]: one for one in spec["templates"]}
    tasks = [task for part in PARTS for task in templates[part]["dag"]["tasks"]]
    steps = [_step(templates[task["template"]]) for task in tasks]
    flat = _in_one_scope([_task(task) for task in tasks], templates)
    given = spec["arguments"]["parameters"]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "plain-", "namespace": template["metadata"]["namespace"]},
        "spec": {
            "entrypoint": "release",
            "templates": [{"name": "release", "dag": {"tasks": flat}}, *steps, _step(templates["settle-release"])],
            "hooks": spec["hooks"],
            "arguments": {
                "parameters": [{"name": p["name"], "value": parameters.get(p["name"], p["value"])} for p in given]
            },
        },
    }


def _step(template: Mapping[str, Any]) -> dict[str, Any]:
    return {name: template[name] for name in KEPT if name in template}


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    after = {"depends": task["depends"].removesuffix(".Succeeded")} if "depends" in task else {}
    return {"name": task["name"], "template": task["template"], "arguments": task.get("arguments", {}), **after}


def _in_one_scope(tasks: list[dict[str, Any]], templates: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Values that went through a nested DAG's outputs and inputs come straight from the task that has them."""
    (outer,) = (task for task in templates["release"]["dag"]["tasks"] if task["name"] == "roll-out")
    inputs = {f"inputs.parameters.{p['name']}": p["value"] for p in outer["arguments"]["parameters"]}
    outputs = {
        f"tasks.build-candidate.outputs.parameters.{p['name']}": p["valueFrom"]["parameter"]
        for p in templates["build-candidate"]["outputs"]["parameters"]
    }
    tasks[next(i for i, task in enumerate(tasks) if task["name"] == "deploy-model")]["depends"] = "build-image"
    text = json.dumps(tasks)
    for known in (inputs, outputs):
        text = re.sub(r"{{([^}]*)}}", lambda found, known=known: known.get(found[1], found[0]), text)  # type: ignore[misc]
    flat: list[dict[str, Any]] = json.loads(text)
    return flat
