"""A run as an Argo Workflow object: what workflow.json holds and what the control API shows."""

from __future__ import annotations

from typing import Any

from seatrial.app.runner import link
from seatrial.app.runner.advance import outcome
from seatrial.app.runner.nodes import Node, Nodes, timestamp
from seatrial.app.runner.plan import Run


def workflow(run: Run, nodes: Nodes) -> dict[str, Any]:
    """The Workflow, JSON-ready."""
    phase, message = outcome(run, nodes)
    metadata = run.manifest.metadata
    spec: dict[str, Any] = {
        "workflowTemplateRef": {"name": metadata.name},
        "entrypoint": run.entrypoint,
        "arguments": {"parameters": [{"name": name, "value": value} for name, value in run.parameters.items()]},
    }
    if run.shutdown:
        spec["shutdown"] = run.shutdown
    pods = [node for node in nodes.values() if node.type == "Pod"]
    status: dict[str, Any] = {
        "phase": phase,
        "startedAt": timestamp(run.created),
        "progress": f"{sum(pod.phase == 'Succeeded' for pod in pods)}/{len(pods)}",
        "nodes": {node.id: _node(node, nodes) for node in nodes.values()},
    }
    if message:
        status["message"] = message
    if phase != "Running":
        status["finishedAt"] = max((node.finished_at or "" for node in nodes.values()), default="")
    return {
        "apiVersion": run.manifest.api_version,
        "kind": "Workflow",
        "metadata": {
            "name": run.name,
            "namespace": run.namespace,
            "uid": run.uid,
            "creationTimestamp": timestamp(run.created),
            "labels": {**metadata.labels, "workflows.argoproj.io/workflow-template": metadata.name},
        },
        "spec": spec,
        "status": status,
    }


def _node(node: Node, nodes: Nodes) -> dict[str, Any]:
    shown = {key: value for key, value in _full(node.manifest()).items() if value not in ("", [], {})}
    library, template = link.parts(node.template_name)
    if library:
        caller = nodes[node.boundary_id].template_name if node.boundary_id else ""
        within = link.parts(caller)[0] == library
        del shown["templateName"]
        shown |= {"templateName": template} if within else {"templateRef": {"name": library, "template": template}}
    return shown


def _full(value: dict[str, Any]) -> dict[str, Any]:
    """Without the empty lists, as Argo leaves them out."""
    return {key: _full(v) if isinstance(v, dict) else v for key, v in value.items() if v != []}
