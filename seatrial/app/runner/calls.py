"""A template that is called, and what one pass over a run knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from seatrial.app.runner import scope, variables
from seatrial.app.runner.manifest import Template
from seatrial.app.runner.nodes import (
    Kind,
    Node,
    NodeArtifact,
    NodeInputs,
    NodeParameter,
    Phase,
    StoredAt,
    node_id,
    timestamp,
)
from seatrial.app.runner.plan import Action, Run, Start, Wake
from seatrial.errors import InvalidInput, StepError

WORKFLOW_DEADLINE = "Step exceeded its deadline"


@dataclass(frozen=True)
class Call:
    """A template with its arguments, at its place in the run."""

    template: Template
    name: str
    display_name: str
    values: Mapping[str, str]
    files: Mapping[str, StoredAt] = field(default_factory=dict)
    boundary: str | None = None
    on_exit: bool = False

    def inputs(self) -> NodeInputs:
        """The template's inputs, from arguments and defaults.

        Raises:
            InvalidInput: A parameter without a default is not given.
        """
        values = []
        for asked in self.template.inputs.parameters:
            value = self.values.get(asked.name, asked.value)
            if value is None:
                raise InvalidInput(f"{self.template.name} needs the parameter {asked.name}, which was not given")
            values.append(NodeParameter(name=asked.name, value=value))
        places = self.template.inputs.artifacts
        files = tuple(NodeArtifact(name=p.name, path=p.path, s3=self.files[p.name]) for p in places)
        return NodeInputs(parameters=tuple(values), artifacts=files)


@dataclass
class State:
    """One pass: the nodes as they become, and what the loop is to do."""

    run: Run
    nodes: dict[str, Node]
    now: float
    actions: list[Action] = field(default_factory=list)

    def at(self, name: str) -> Node | None:
        """The node of that name."""
        return self.nodes.get(node_id(self.run.name, name))

    def put(self, node: Node) -> Node:
        """Write a node down."""
        self.nodes[node.id] = node
        return node

    def group(self, call: Call) -> Node:
        """The node of a fan-out, of which `call` is one: it has no inputs of its own."""
        return Node(
            id=node_id(self.run.name, call.name),
            name=call.name,
            display_name=call.display_name,
            type="TaskGroup",
            template_name=call.template.name,
            phase="Running",
            boundary_id=call.boundary,
            started_at=timestamp(self.now),
        )

    def make(self, call: Call, *, name: str = "", kind: Kind, phase: Phase) -> Node:
        """Write a new node of `call` down; `name` where it is not the call's own."""
        name = name or call.name
        return self.put(
            Node(
                id=node_id(self.run.name, name),
                name=name,
                display_name=call.display_name + name.removeprefix(call.name),
                type=kind,
                template_name=call.template.name,
                phase=phase,
                boundary_id=call.boundary,
                started_at=timestamp(self.now),
                inputs=call.inputs(),
            )
        )

    def start(self, call: Call, *, name: str = "", attempt: int | None = None) -> Node:
        """A new pod, to be started; `attempt` counts from 0 where it may be tried again."""
        container = call.template.container
        if container is None:
            raise StepError(f"{call.template.name} has no container to start")
        node = self.make(call, name=name, kind="Pod", phase="Pending")
        lookup = scope.of_container(self.run, node.inputs, attempt=attempt)
        if not _is_patch(variables.replaced(call.template.pod_spec_patch or "", lookup)):
            said = "Error applying PodSpecPatch"
            words = said if attempt is not None else f"task '{node.name}' errored: {said}"
            return self.put(node.ended("Error", self.now, words))
        args = tuple(variables.replaced(text, lookup) for text in container.args)
        values = {entry.name: variables.replaced(entry.value, lookup) for entry in container.env}
        self.actions.append(Start(node.id, args=args, variables=values))
        return node

    def halted(self, call: Call) -> str:
        """Why nothing of `call` may run any more; empty: it may. An exit handler outlives a stop and the deadline."""
        shutdown, deadline_s = self.run.shutdown, self.run.manifest.spec.active_deadline_seconds
        if shutdown == "Terminate" or (shutdown and not call.on_exit):
            return f"workflow shutdown with strategy: {shutdown}"
        if deadline_s is None or call.on_exit:
            return ""
        if self.now >= self.run.created + deadline_s:
            return WORKFLOW_DEADLINE
        self.actions.append(Wake(self.run.created + deadline_s))
        return ""


def _is_patch(text: str) -> bool:
    """Whether a pod-spec patch can be applied: an object, or nothing. What it asks for means nothing here."""
    try:
        return text == "" or isinstance(yaml.safe_load(text), dict)
    except yaml.YAMLError:
        return False
