"""A DAG: which task's time has come, which is left out, and what the whole thing comes to.

Source: workflow/controller/dag.go of Argo Workflows 4.0.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from seatrial.app.runner import expression, scope, variables
from seatrial.app.runner.calls import Call, State
from seatrial.app.runner.manifest import DagTask
from seatrial.app.runner.nodes import UNSUCCESSFUL, Node, NodeOutputs, NodeParameter, Phase, StoredAt, node_id
from seatrial.errors import InvalidInput, StepError

LEFT_OUT: Final[frozenset[Phase]] = frozenset({"Skipped", "Omitted"})


@dataclass(frozen=True)
class DagRun:
    """One pass over one DAG."""

    state: State
    call: Call
    node_id: str
    execute: Callable[[Call], Node]

    def advance(self) -> Node:
        """The DAG's node, after every task whose time has come was started or left out."""
        for task in self._tasks:
            self._advance(task)
        phase, node = self._phase(), self.state.nodes[self.node_id]
        if phase == "Running":
            return node
        if phase == "Succeeded":
            return self.state.put(node.but(outputs=self._outputs()).ended(phase, self.state.now))
        failed = sorted(self._failed)
        message = f"child '{self._id(failed[0])}' failed" if failed else ""
        return self.state.put(node.ended(phase, self.state.now, message))

    @cached_property
    def _tasks(self) -> list[DagTask]:
        dag = self.call.template.dag
        if dag is None:
            raise StepError(f"{self.call.template.name} has no dag")
        return scope.in_order({task.name: task for task in dag.tasks})

    def _id(self, task: str) -> str:
        return node_id(self.state.run.name, f"{self.call.name}.{task}")

    def _of(self, task: str) -> Node | None:
        return self.state.nodes.get(self._id(task))

    def _lookup(self, *, left_out: str = "") -> scope.Text:
        inputs = self.state.nodes[self.node_id].inputs
        return scope.of_task(self.state.run, inputs, self._of, left_out=left_out)

    # One task

    def _advance(self, task: DagTask) -> None:
        known = self._of(task.name)
        if known is None and not self._may_start(task):
            return
        if known is None or not known.fulfilled:
            self.execute(self._called(task))
        if known is None:
            self._attach(task)

    def _called(self, task: DagTask) -> Call:
        lookup = self._lookup()
        return Call(
            template=self.state.run.manifest.template(task.template),
            name=f"{self.call.name}.{task.name}",
            display_name=task.name,
            values={given.name: variables.replaced(given.value, lookup) for given in task.arguments.parameters},
            files={given.name: self._file(given.from_) for given in task.arguments.artifacts},
            boundary=self.node_id,
            on_exit=self.call.on_exit,
        )

    def _file(self, reference: str) -> StoredAt:
        _, task, _, _, artifact = variables.references(reference)[0].split(".")
        giver = self._of(task)
        stored = {a.name: a.s3 for a in giver.outputs.artifacts} if giver is not None and giver.outputs else {}
        if artifact not in stored:
            raise StepError(f"{reference} was not given by {task}")
        return stored[artifact]

    def _may_start(self, task: DagTask) -> bool:
        """Whether its time has come; a task whose condition fails is left out here."""
        before = {name: self._of(name) for name in scope.dependencies(task)}
        if any(node is None or not node.fulfilled for node in before.values()):
            return False
        if task.depends and not expression.is_true(task.depends, scope.of_depends(before)):
            self._leave_out(task, "Omitted", "omitted: depends condition not met")
            return False
        if self._failed and not self._failed_and_after & before.keys():
            return False  # failFast, Argo's default: after a failure only what waits for it still starts
        return task.when is None or self._gate(task, variables.replaced(task.when, self._lookup()))

    def _gate(self, task: DagTask, text: str) -> bool:
        try:
            goes_on = expression.is_true(text, scope.nothing)
        except InvalidInput as error:
            self._leave_out(task, "Error", f"Invalid 'when' expression '{text}': {error}")
            return False
        if not goes_on:
            self._leave_out(task, "Skipped", f"when '{text}' evaluated false")
        return goes_on

    def _leave_out(self, task: DagTask, phase: Phase, message: str) -> None:
        node = Node(
            id=self._id(task.name),
            name=f"{self.call.name}.{task.name}",
            display_name=task.name,
            type="Skipped",
            template_name=task.template,
            phase=phase,
            boundary_id=self.node_id,
        )
        self.state.put(node.ended(phase, self.state.now, message))
        self._attach(task)

    def _attach(self, task: DagTask) -> None:
        """Make the task a child of what it waited for, or of the DAG where it waited for nothing."""
        ends = [end for name in sorted(scope.dependencies(task)) for end in self._ends(self._of(name))]
        for parent in ends or [self.node_id]:
            node = self.state.nodes[parent]
            self.state.put(node.but(children=(*node.children, self._id(task.name))))

    def _ends(self, node: Node | None) -> list[str]:
        """Where a task ends: its last attempt, the last tasks of a nested DAG, or its only node."""
        if node is None:
            return []
        dag = self.state.run.manifest.template(node.template_name).dag
        if dag is not None and node.type == "DAG":
            last = scope.last(dag.tasks)
            inner = [self.state.at(f"{node.name}.{name}") for name in last]
            return [end for found in inner for end in self._ends(found)] or [node.id]
        return [node.children[-1]] if node.type == "Retry" and node.children else [node.id]

    # The whole

    @property
    def _failed(self) -> set[str]:
        known = {task.name: self._of(task.name) for task in self._tasks}
        return {name for name, node in known.items() if node is not None and node.phase in UNSUCCESSFUL}

    @property
    def _failed_and_after(self) -> set[str]:
        line = self._failed
        for task in self._tasks:
            if scope.dependencies(task) & line:
                line.add(task.name)
        return line

    def _phase(self) -> Phase:
        """The worst of the last tasks; one that was left out inherits from what it waited for."""
        phases: dict[str, Phase | None] = {}
        for task in self._tasks:
            node = self._of(task.name)
            phases[task.name] = node.phase if node is not None else None
            if node is not None and not node.fulfilled:
                return "Running"
            if node is not None and node.phase in LEFT_OUT:
                phases[task.name] = _worst([phases[name] for name in scope.dependencies(task)])
        ends = [phases[name] for name in scope.last(self._tasks)]
        if None in ends and not self._failed:
            return "Running"
        worst = _worst(ends)
        return "Failed" if None in ends and worst == "Succeeded" else worst

    def _outputs(self) -> NodeOutputs:
        """What the DAG gives; for what a task that was left out would have given, the default."""
        values = []
        for wanted in self.call.template.outputs.parameters:
            reference = variables.references(wanted.value_from.parameter or "")[0]
            value = self._lookup(left_out=wanted.value_from.default or "")(reference)
            values.append(NodeParameter(name=wanted.name, value=value))
        return NodeOutputs(parameters=tuple(values))


def _worst(phases: list[Phase | None]) -> Phase:
    bad: tuple[Phase, ...] = ("Error", "Failed")
    return next((phase for phase in bad if phase in phases), "Succeeded")
