"""A run as a list of lines: every step of the template in its order, whether it has begun or not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

SYMBOLS: Final[Mapping[str, str]] = {
    "": "·",
    "Pending": "◌",
    "Running": "▶",
    "Succeeded": "✔",
    "Failed": "✘",
    "Error": "✘",
    "Skipped": "○",
    "Omitted": "○",
}
"""Phase → what stands before the step; the empty phase has not begun."""


WAITS_FOR_LOCK: Final = "Waiting for"
"""How Argo begins to say which lock a node waits for. Source: workflow/sync."""
STARTING: Final = ("PodInitializing", "ContainerCreating")
"""What every pod says for a moment."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One step, or one group of steps."""

    depth: int
    name: str
    phase: str
    """Argo's; empty: not begun."""
    group: bool
    message: str
    started: float | None
    """Seconds since 1970."""
    ended: float | None
    node_id: str
    """Of the latest attempt: where its log is. Empty: not begun."""
    outputs: Mapping[str, str]

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.ended is not None or self.phase in {"Skipped", "Omitted"}

    @property
    def ran(self) -> bool:
        """Whether it did something."""
        return self.phase not in {"", "Pending", "Skipped", "Omitted"}

    @property
    def waits(self) -> bool:
        """Whether it waits for something that it says."""
        pending = self.phase == "Pending" and bool(self.message) and not self.message.startswith(STARTING)
        return pending or (not self.over and self.message.startswith(WAITS_FOR_LOCK))

    def seconds(self, now: float | None = None) -> float | None:
        """How long it took, or takes already; None: it did nothing."""
        if self.started is None or not self.ran:
            return None
        return (self.ended or now or time.time()) - self.started


def lines(template: Mapping[str, Any], workflow: Mapping[str, Any]) -> list[Line]:
    """Every step, with what the run says of it.

    Args:
        template: The rendered WorkflowTemplate.
        workflow: The run so far.
    """
    spec = template["spec"]
    templates = {entry["name"]: entry for entry in spec["templates"]}
    nodes = {str(node["displayName"]): node for node in workflow.get("status", {}).get("nodes", {}).values()}
    known = workflow.get("status", {}).get("nodes", {})
    start = workflow.get("spec", {}).get("entrypoint") or spec["entrypoint"]
    found = list(_below(templates, templates[start], nodes, known, 0))
    leave = spec.get("hooks", {}).get("exit")
    if leave:
        name = f"{workflow.get('metadata', {}).get('name', '')}.onExit"
        found.append(_line(leave["template"], nodes.get(name), known, 0, group=False))
    return found


def _below(
    templates: Mapping[str, Any],
    template: Mapping[str, Any],
    nodes: Mapping[str, Any],
    known: Mapping[str, Any],
    depth: int,
) -> Iterator[Line]:
    for task in template.get("dag", {}).get("tasks", ()):
        inner = templates[task["template"]]
        yield _line(task["name"], nodes.get(task["name"]), known, depth, group="dag" in inner)
        yield from _below(templates, inner, nodes, known, depth + 1)


def _line(name: str, node: Mapping[str, Any] | None, known: Mapping[str, Any], depth: int, *, group: bool) -> Line:
    if node is None:
        return Line(
            depth=depth, name=name, phase="", group=group, message="", started=None, ended=None, node_id="", outputs={}
        )
    attempts = [known[child] for child in node.get("children", ()) if child in known] if node["type"] == "Retry" else []
    latest = attempts[-1] if attempts else node
    given = (node.get("outputs") or {}).get("parameters", ())
    return Line(
        depth=depth,
        name=name,
        phase=str(node["phase"]),
        group=group,
        message=str(latest.get("message") or node.get("message") or ""),  # a Retry node says why there is no other one
        started=_moment(node.get("startedAt")),
        ended=_moment(node.get("finishedAt")),
        node_id=str(latest["id"]),
        outputs={str(p["name"]): str(p["value"]) for p in given if p.get("value") is not None},
    )


def _moment(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
