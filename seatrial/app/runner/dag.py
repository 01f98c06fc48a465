"""A DAG: which task's time has come, which is left out, and what the whole thing comes to.

Source: workflow/controller/dag.go of Argo Workflows 4.0.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from seatrial.app.runner import expression, fanout, scope, variables
from seatrial.app.runner.calls import Call, State
from seatrial.app.runner.manifest import Arguments, DagTask
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
        return self.state.put(node.ended(phase, self.state.now))

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
        if known is not None and known.fulfilled:
            return
        if known is None and not self._may_start(task):
            return
        try:
            self._go_on(task, known)
        except InvalidInput as error:
            self._leave_out(task.name, task, "Error", str(error))
            self._attach(task)

    def _go_on(self, task: DagTask, known: Node | None) -> None:
        """Start it, or carry on with what was started."""
        if task.with_param is not None:
            self._fan_out(task, known)
            return
        if known is not None or self._gate(task.name, task, self._lookup()):
            self.execute(self._called(task.name, task, self._lookup()))
        if known is None:
            self._attach(task)

    def _called(self, name: str, task: DagTask, lookup: scope.Text) -> Call:
        return Call(
            template=self.state.run.manifest.template(task.template),
            name=f"{self.call.name}.{name}",
            display_name=name,
            values={given.name: variables.replaced(given.value, lookup) for given in task.arguments.parameters},
            files={given.name: self._file(given.from_) for given in task.arguments.artifacts},
            boundary=self.node_id,
            on_exit=self.call.on_exit,
        )

    def _fan_out(self, task: DagTask, known: Node | None) -> None:
        """One task for each item, and a node for them all, which has ended when they have."""
        items = self._items(task)
        if not items:
            self._leave_out(task.name, task, "Skipped", "Skipped, empty params")
            self._attach(task)
            return
        if known is None:
            group = self._called(task.name, task.model_copy(update={"arguments": Arguments()}), self._lookup())
            self.state.put(self.state.group(group))
            self._attach(task)
        members = [self._member(task, item) for item in items]
        if all(member.fulfilled for member in members):
            bad = [member.phase for member in members if member.phase in UNSUCCESSFUL]
            group_node = self.state.nodes[self._id(task.name)]
            self.state.put(group_node.ended(bad[-1] if bad else "Succeeded", self.state.now))

    def _items(self, task: DagTask) -> list[fanout.Item]:
        """One for each member. A `when` that does not hold leaves the list unresolved: often there are none then."""
        text = task.with_param or ""
        if self._holds(task):
            return fanout.items(task.name, variables.replaced(text, self._lookup()))
        try:
            return fanout.items(task.name, text)
        except InvalidInput:
            return []

    def _holds(self, task: DagTask) -> bool:
        """Whether its `when`, if that can be told without an item, lets it start."""
        if task.when is None or any(name.partition(".")[0] == "item" for name in variables.references(task.when)):
            return True
        return expression.is_true(variables.replaced(task.when, self._lookup()), scope.nothing)

    def _member(self, task: DagTask, item: fanout.Item) -> Node:
        known, outer = self._of(item.name), self._lookup()

        def lookup(name: str) -> str:
            return item.value(name) if name.partition(".")[0] == "item" else outer(name)

        if known is None:
            self._adopt(self._id(task.name), self._id(item.name))
            if not self._gate(item.name, task, lookup):
                return self.state.nodes[self._id(item.name)]
        elif known.fulfilled:
            return known
        return self.execute(self._called(item.name, task, lookup))

    def _file(self, reference: str) -> StoredAt:
        _, task, _, _, artifact = variables.references(reference)[0].split(".")
        giver = self._of(task)
        stored = {a.name: a.s3 for a in giver.outputs.artifacts} if giver is not None and giver.outputs else {}
        if artifact not in stored:
            raise InvalidInput(f'Unable to resolve: "tasks.{task}.outputs.artifacts.{artifact}"')
        return stored[artifact]

    def _may_start(self, task: DagTask) -> bool:
        """Whether its time has come; a task whose condition fails is left out here."""
        before = {name: self._of(name) for name in scope.dependencies(task)}
        if any(node is None or not node.fulfilled for node in before.values()):
            return False
        if task.depends and not expression.is_true(task.depends, scope.of_depends(before, self._phases_within)):
            self._leave_out(task.name, task, "Omitted", "omitted: depends condition not met")
            self._attach(task)
            return False
        return True

    def _gate(self, name: str, task: DagTask, lookup: scope.Text) -> bool:
        """Whether its `when` lets it start; if not, its node says so."""
        if task.when is None:
            return True
        text = variables.replaced(task.when, lookup)
        try:
            goes_on = expression.is_true(text, scope.nothing)
        except InvalidInput as error:
            self._leave_out(name, task, "Error", f"Invalid 'when' expression '{text}': {error}")
            return False
        if not goes_on:
            self._leave_out(name, task, "Skipped", f"when '{text}' evaluated false")
        return goes_on

    def _leave_out(self, name: str, task: DagTask, phase: Phase, message: str) -> None:
        node = Node(
            id=self._id(name),
            name=f"{self.call.name}.{name}",
            display_name=name,
            type="Skipped",
            template_name=task.template,
            phase=phase,
            boundary_id=self.node_id,
        )
        self.state.put(node.ended(phase, self.state.now, message))

    def _attach(self, task: DagTask) -> None:
        """Make the task a child of what it waited for, or of the DAG where it waited for nothing."""
        ends = [end for name in sorted(scope.dependencies(task)) for end in self._ends(self._of(name))]
        for parent in ends or [self.node_id]:
            self._adopt(parent, self._id(task.name))

    def _adopt(self, parent: str, child: str) -> None:
        node = self.state.nodes[parent]
        if child not in node.children:
            self.state.put(node.but(children=(*node.children, child)))

    def _phases_within(self, node: Node) -> list[Phase]:
        """The phases of a fan-out's members."""
        return [self.state.nodes[child].phase for child in node.children] if node.type == "TaskGroup" else []

    def _ends(self, node: Node | None) -> list[str]:
        """Where a task ends: its last attempt, the last tasks of a nested DAG, or its only node."""
        if node is None:
            return []
        if node.type == "TaskGroup":
            return [end for child in node.children for end in self._ends(self.state.nodes[child])]
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

    def _phase(self) -> Phase:
        """The worst of the last tasks; one that was left out inherits from what it waited for."""
        phases: dict[str, Phase | None] = {}
        for task in self._tasks:
            node = self._of(task.name)
            phases[task.name] = node.phase if node is not None else None
            if node is not None and not node.fulfilled:
                if not self._given_up(node):
                    return "Running"
                phases[task.name] = "Failed"
            if node is not None and node.phase in LEFT_OUT:
                phases[task.name] = _worst([phases[name] for name in scope.dependencies(task)])
        if self._stopped:
            return "Failed"
        ends = [phases[name] for name in scope.last(self._tasks)]
        if None in ends and not self._failed:
            return "Running"
        worst = _worst(ends)
        return "Failed" if None in ends and worst == "Succeeded" else worst

    def _given_up(self, node: Node) -> bool:
        """Whether it waited for a lock when the run was stopped."""
        return self._stopped and node.type == "DAG" and node.phase == "Pending"

    @property
    def _stopped(self) -> bool:
        """Whether a stop or a termination ends it, whatever its tasks came to."""
        return bool(self.state.run.shutdown and self.state.halted(self.call))

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
