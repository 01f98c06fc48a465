"""Argo's Workflows and WorkflowTemplates over the Kubernetes API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.ports import Manifest

if TYPE_CHECKING:
    from seatrial.adapters.kubernetes import Resource

COMPLETED: Final = "workflows.argoproj.io/completed"
"""Label that the controller sets when a Workflow has ended, its exit handler included. Source: workflow/common."""


class ArgoWorkflows:
    """The ports `Workflows` and `Runs`."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def get(self, name: str) -> Manifest | None:
        """The Workflow with its status.nodes; None when there is none."""
        return self._resource.get(name)

    def create(self, manifest: Manifest) -> Manifest:
        """Create; the object as the server keeps it, with the name that it gave."""
        return self._resource.create(manifest)

    def living(self) -> list[Manifest]:
        """Every Workflow that has not ended; one that the controller has not met yet is one of them."""
        return self._resource.items(f"{COMPLETED}!=true")

    def ended(self) -> list[Manifest]:
        """Every Workflow that has ended and is kept still."""
        return self._resource.items(f"{COMPLETED}=true")


class WorkflowTemplates:
    """What Workflows are made from."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def get(self, name: str) -> Manifest | None:
        """The template; None when there is none."""
        return self._resource.get(name)
