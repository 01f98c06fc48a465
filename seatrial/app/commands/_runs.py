"""Releases on a cluster, as their Workflows tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from seatrial.app.commands._ending import SETTLE
from seatrial.errors import StepError
from seatrial.names import kebab
from seatrial.ports import Manifest
from seatrial.release import EXIT_CODES
from steps.settle_release import history, logic

TEMPLATE: Final = "release"
MODEL_LABEL: Final = "seatrial.dev/model"
OVER: Final = frozenset({"Succeeded", "Failed", "Error"})


def choices(template: Manifest) -> list[str]:
    """The models that the template's form offers, sorted."""
    return sorted(str(one) for one in parameters(template).get("MODEL_NAME", {}).get("enum") or ())


def parameters(template: Manifest) -> dict[str, dict[str, Any]]:
    """Name → the template's parameter."""
    asked = template["spec"].get("arguments", {}).get("parameters") or ()
    return {str(one["name"]): one for one in asked}


def workflow(model: str, given: Mapping[str, str], *, entrypoint: str | None = None) -> Manifest:
    """The Workflow that releases a model.

    Args:
        model: Its name.
        given: Parameter → value.
        entrypoint: The template to start; None: the whole.
    """
    spec: dict[str, Any] = {
        "workflowTemplateRef": {"name": TEMPLATE},
        "arguments": {"parameters": [{"name": name, "value": value} for name, value in given.items()]},
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "generateName": f"{TEMPLATE}-{kebab(model)}-",
            "labels": {MODEL_LABEL: kebab(model), "workflows.argoproj.io/workflow-template": TEMPLATE},
        },
        "spec": {**spec, **({"entrypoint": entrypoint} if entrypoint else {})},
    }


def is_release(run: Manifest) -> bool:
    """Whether a Workflow releases a model, however it was submitted."""
    ref = (run.get("spec") or {}).get("workflowTemplateRef") or {}
    return bool(ref.get("name") == TEMPLATE)


def is_release_of(run: Manifest, model: str) -> bool:
    """Whether a Workflow releases the model, however it was submitted."""
    return is_release(run) and history.parameter(run, "MODEL_NAME") == model


def pod(run: str, node: Manifest) -> str:
    """The pod of a Workflow's node. Source: argo-workflows, workflow/util/pod_name.go, version 2."""
    template = str(node.get("templateName") or (node.get("templateRef") or {}).get("template", ""))
    return f"{run}-{template}-{str(node['id']).rpartition('-')[2]}"


def phase(run: Manifest) -> str:
    """Argo's; `Pending` while the controller has not met it."""
    return str((run.get("status") or {}).get("phase") or "Pending")


def unpacked(run: Manifest) -> dict[str, Any]:
    """The Workflow with all of its nodes in status.nodes, however Argo keeps them.

    Raises:
        Unavailable: They are kept elsewhere or cannot be read.
    """
    status = run.get("status") or {}
    return {**run, "status": {**status, "nodes": history.nodes(status)}}


def summary(run: Manifest) -> dict[str, Any]:
    """What settle_release said of the run and, beside it, what the steps gave; empty when it said nothing."""
    said = _word(run)
    if said is None:
        return {}
    steps = history.steps(run)
    package, image = steps.get("package-model"), steps.get("build-image")
    deploy = steps.get(logic.DEPLOY)
    bundle = package.outputs.get("bundle-digest") if package else deploy.inputs.get("bundle-digest") if deploy else None
    built = f"{package.outputs.get('repository')}@{image.outputs.get('digest')}" if package and image else None
    return {
        "outcome": said,
        "version": logic.version_of(steps) or _resolved(steps),
        "reasons": _reasons(steps) if said not in {"promoted", "unchanged"} else [],
        "bundle": bundle,
        "image": built or (deploy.inputs.get("image") if deploy else None),
    }


def facts(run: Manifest) -> dict[str, Any]:
    """One line of the status page: how it ended, or that it runs."""
    status = run.get("status") or {}
    over = phase(run) in OVER
    try:
        told = summary(run)
        steps = history.steps(run)
    except StepError as error:
        told, steps = {"reasons": [str(error)]}, {}
    ended = told.get("outcome") or "failed"
    why = told.get("reasons") or ([str(status.get("message"))] if status.get("message") else [])
    return {
        "release_id": history.uid(run),
        "run": run["metadata"]["name"],
        "outcome": ended if over else phase(run).lower(),
        "version": told.get("version") or logic.version_of(steps),
        "at": str(status.get("finishedAt") or status.get("startedAt") or run["metadata"].get("creationTimestamp", "")),
        "reasons": why if over else [],
    }


def version(run: Manifest) -> int | None:
    """The version that it is about; None: it never got one."""
    steps = history.steps(run)
    return logic.version_of(steps) or _resolved(steps)


def seconds(run: Manifest) -> float:
    """From its creation until its end; 0 when it does not tell."""
    began, ended = run["metadata"].get("creationTimestamp"), (run.get("status") or {}).get("finishedAt")
    if not (began and ended):
        return 0.0
    return (datetime.fromisoformat(str(ended)) - datetime.fromisoformat(str(began))).total_seconds()


def _word(run: Manifest) -> str | None:
    """The outcome that settle_release gave; it is red for most of them, so its phase does not count."""
    for node in history.nodes(run.get("status") or {}).values():
        if node.get("templateName") != SETTLE:
            continue
        for given in (node.get("outputs") or {}).get("parameters") or ():
            if given.get("name") == "outcome" and given.get("value") in EXIT_CODES:
                return str(given["value"])
    return None


def _reasons(steps: Mapping[str, history.Node]) -> list[str]:
    """The step that decided, and what it says: the checks behind it stand in its verdict."""
    deciding = logic.deciding(steps)
    told = logic.why(deciding, []) if deciding is not None else []
    return [reason.replace(": ", " says ", 1) for reason in told]


def _resolved(steps: Mapping[str, history.Node]) -> int | None:
    """The version that resolve_release names: of a release that is unchanged, the champion's."""
    told = steps[logic.RESOLVE].outputs.get("version", "") if logic.RESOLVE in steps else ""
    return int(told) if told.isdigit() and int(told) > 0 else None
