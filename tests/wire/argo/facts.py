"""What of a finished Workflow is held against another run of the same case: nothing that differs from run to run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import yaml

from .case import FOLDER, Submission

TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?")
LONG: Final = 2_000
"""Texts longer than this many characters are kept as their length and digest."""

Facts = dict[str, Any]


def of_case(workflows: Mapping[str, dict[str, Any]], waited: Mapping[str, dict[str, str]]) -> Facts:
    """The facts of a case.

    Args:
        workflows: The case's name of each → the finished Workflow.
        waited: The case's name of each → node → what it said while it waited for a lock.
    """
    facts: Facts = {"workflows": {name: _steady(name, of_workflow(made)) for name, made in workflows.items()}}
    if len(workflows) > 1:
        facts["order"] = _order(workflows)
    for name, nodes in waited.items():
        if nodes:
            facts["workflows"][name]["waited"] = dict(nodes)
    return facts


def of_workflow(workflow: Mapping[str, Any]) -> Facts:
    """Phase, message and nodes, without ids, names of pods and times."""
    status = workflow.get("status", {})
    nodes = {node["id"]: node for node in status.get("nodes", {}).values()}
    plain = Plain(workflow)
    facts: Facts = {"phase": status.get("phase", ""), "message": plain.text(status.get("message", ""))}
    facts["nodes"] = {plain.name(node): _node(node, nodes, plain) for node in nodes.values()}
    return facts


def _steady(name: str, facts: Facts) -> Facts:
    """Without what two recordings need not agree on: `unsteady.yaml`."""
    for path in _unsteady().get(name, []):
        *above, last = path.split("/")
        place = facts
        for part in above:
            place = place.get(part, {})
        place.pop(last, None)
    return facts


@cache
def _unsteady() -> dict[str, list[str]]:
    listed = yaml.safe_load((FOLDER / "unsteady.yaml").read_text(encoding="utf-8"))
    return {name: paths for entry in listed for name, paths in entry["cases"].items()}


class Plain:
    """Texts of one Workflow, with what differs from run to run replaced."""

    def __init__(self, workflow: Mapping[str, Any]) -> None:
        self.workflow = workflow["metadata"]["name"]
        self.namespace = workflow["metadata"]["namespace"]
        nodes = workflow.get("status", {}).get("nodes", {}).values()
        self.names = {node["id"]: self.name(node) for node in nodes}

    def name(self, node: Mapping[str, Any]) -> str:
        """A node's name without the workflow's; the root is `.`."""
        return str(node["name"]).removeprefix(self.workflow).removeprefix(".") or "."

    def text(self, text: str) -> str:
        """A message or a value."""
        for node, name in sorted(self.names.items(), key=lambda pair: -len(pair[0])):
            if node != self.workflow:
                text = text.replace(node, f"<{name}>")
        text = text.replace(self.workflow, "<workflow>").replace(self.namespace, "<namespace>")
        text = TIME.sub("<time>", text)
        return (
            text if len(text) <= LONG else f"{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()}"
        )


def waits(workflow: Mapping[str, Any]) -> dict[str, str]:
    """Node → message of those that wait for a lock now."""
    plain = Plain(workflow)
    nodes = workflow.get("status", {}).get("nodes", {}).values()
    return {
        plain.name(node): f"{node['phase']}: {plain.text(node.get('message', ''))}"
        for node in nodes
        if node.get("synchronizationStatus", {}).get("waiting")
    }


def runs(workflow: Mapping[str, Any], called: str, node_name: str) -> bool:
    """Whether a node runs now.

    Args:
        workflow: As it is now.
        called: The case's name for it.
        node_name: `<the case's name>.<task>…`.
    """
    plain = Plain(workflow)
    nodes = workflow.get("status", {}).get("nodes", {}).values()
    return any(f"{called}.{plain.name(node)}" == node_name and node["phase"] == "Running" for node in nodes)


def phases(workflow: Mapping[str, Any]) -> dict[str, str]:
    """Id → phase of each node."""
    return {key: node["phase"] for key, node in workflow.get("status", {}).get("nodes", {}).items()}


def is_due(submission: Submission, workflow: Mapping[str, Any]) -> bool:
    """Whether the moment for its shutdown has come."""
    running, waiting = submission.annotation("shutdown-once-running"), submission.annotation("shutdown-once-waiting")
    if running:
        return runs(workflow, submission.name, running)
    return bool(waiting) and waiting in {f"{submission.name}.{name}" for name in waits(workflow)}


def _node(node: Mapping[str, Any], nodes: Mapping[str, Any], plain: Plain) -> Facts:
    outputs = node.get("outputs") or {}
    facts: Facts = {
        "displayName": plain.text(node["displayName"]),
        "type": node["type"],
        "phase": node["phase"],
        "message": plain.text(node.get("message", "")),
        "template": _template(node),
        "boundary": plain.names.get(node.get("boundaryID", ""), ""),
        "children": sorted(plain.names.get(child, f"no node {child}") for child in node.get("children", [])),
        "inputs": _parameters(node.get("inputs") or {}, plain),
        "outputs": _parameters(outputs, plain),
        "artifacts": sorted(artifact["name"] for artifact in outputs.get("artifacts", [])),
        "exitCode": outputs.get("exitCode", ""),
        "early": _early(node, nodes, plain),
    }
    return {key: value for key, value in facts.items() if value not in ("", [], {})}


def _template(node: Mapping[str, Any]) -> str:
    reference = node.get("templateRef")
    return f"{reference['name']}/{reference['template']}" if reference else str(node.get("templateName", ""))


def _parameters(holder: Mapping[str, Any], plain: Plain) -> Facts:
    given = {p["name"]: p["value"] for p in holder.get("parameters") or [] if p.get("value") is not None}
    return {name: _value(name, value, plain) for name, value in given.items()}


def _value(name: str, value: str, plain: Plain) -> Any:
    return _failures(value, plain) if name == "failures" else plain.text(value)


def _failures(text: str, plain: Plain) -> Any:
    """`workflow.failures`: a list in an order of chance, inside a text inside JSON."""
    inner = json.loads(text)
    if not isinstance(inner, str):
        return {"not quoted": inner}
    failures = json.loads(inner)
    if failures is None:
        return None
    plainer = [{key: plain.text(str(value)) for key, value in each.items() if key != "podName"} for each in failures]
    return sorted(plainer, key=lambda each: (each["displayName"], each["templateName"]))


def _early(node: Mapping[str, Any], nodes: Mapping[str, Any], plain: Plain) -> list[str]:
    """The pods before it that had not ended when it started."""
    before = [n for n in nodes.values() if node["id"] in n.get("children", []) and n["type"] == "Pod"]
    return sorted(plain.name(n) for n in before if n["finishedAt"] > node["startedAt"])


def _order(workflows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The pods of all of them in the order of their starts, without the exit handlers'."""
    pods: list[tuple[str, str]] = []
    for name, workflow in workflows.items():
        plain = Plain(workflow)
        nodes: Sequence[Mapping[str, Any]] = list(workflow.get("status", {}).get("nodes", {}).values())
        started = [n for n in nodes if n["type"] == "Pod" and not plain.name(n).startswith("onExit")]
        pods += [(n["startedAt"], f"{name}.{plain.name(n)}") for n in started]
    return [name for _, name in sorted(pods)]
