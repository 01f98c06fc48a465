"""The nodes of a run, as Argo writes them into a Workflow's `status.nodes`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import Field

from seatrial.objects import KubernetesModel

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Error", "Skipped", "Omitted"]
Kind = Literal["Pod", "DAG", "Retry", "TaskGroup", "Skipped"]

COMPLETED: Final[frozenset[Phase]] = frozenset({"Succeeded", "Failed", "Error"})
FULFILLED: Final[frozenset[Phase]] = COMPLETED | {"Skipped", "Omitted"}
UNSUCCESSFUL: Final[frozenset[Phase]] = frozenset({"Failed", "Error"})


class NodeParameter(KubernetesModel):
    """A parameter with its value."""

    name: str
    value: str


class StoredAt(KubernetesModel):
    """Argo's S3 key; here a path under the folder of runs."""

    key: str


class NodeArtifact(KubernetesModel):
    """A file: where the container sees it, and where it is kept."""

    name: str
    path: str
    s3: StoredAt


class NodeInputs(KubernetesModel):
    """What the node got."""

    parameters: tuple[NodeParameter, ...] = ()
    artifacts: tuple[NodeArtifact, ...] = ()

    def values(self) -> dict[str, str]:
        """Name → value."""
        return {parameter.name: parameter.value for parameter in self.parameters}


class NodeOutputs(NodeInputs):
    """What the node gave."""

    exit_code: str | None = None


class Waiting(KubernetesModel):
    """The lock that a node waits for: namespace/Mutex/name."""

    waiting: str


class Node(KubernetesModel):
    """One node."""

    id: str
    name: str
    display_name: str
    type: Kind
    template_name: str
    phase: Phase
    boundary_id: str | None = Field(default=None, alias="boundaryID")
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    inputs: NodeInputs = NodeInputs()
    outputs: NodeOutputs | None = None
    children: tuple[str, ...] = ()
    synchronization_status: Waiting | None = None

    @property
    def fulfilled(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.phase in FULFILLED

    def but(self, **changes: Any) -> Node:  # noqa: ANN401 - the fields' own types
        """The node with some fields changed."""
        return self.model_copy(update=changes)

    def ended(self, phase: Phase, now: float, message: str = "") -> Node:
        """The node, over; one that never started started now."""
        return self.but(
            phase=phase,
            message=message,
            started_at=self.started_at or timestamp(now),
            finished_at=timestamp(now),
            synchronization_status=None,
        )


Nodes = Mapping[str, Node]
"""Id → node, in the order in which they were made."""


def node_id(workflow: str, name: str) -> str:
    """Argo's id of a node: the workflow's name and FNV-1a (32 bit) of the node's; the root's is the workflow's name."""
    if name == workflow:
        return workflow
    digest = 0x811C9DC5
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"{workflow}-{digest}"


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> float:
    """The reverse of `timestamp`: seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
