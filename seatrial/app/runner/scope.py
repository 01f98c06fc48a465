"""What names mean where: in a workflow, in a container, in a task, in `depends`, in a retry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Final

from seatrial.app.runner import expression
from seatrial.app.runner.manifest import DagTask
from seatrial.app.runner.nodes import Node, NodeInputs, Phase, timestamp
from seatrial.app.runner.plan import Run
from seatrial.errors import InvalidInput, StepError

Text = Callable[[str], str]

STATES: Final[dict[str, str]] = {
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Errored": "Error",
    "Skipped": "Skipped",
    "Omitted": "Omitted",
    "AnySucceeded": "",
    "AllFailed": "",
}
"""What may follow a task's name in `depends` → the phase it asks for; empty: it asks for its members'."""


def of_workflow(run: Run, more: Mapping[str, str] | None = None) -> Text:
    """`workflow.*`."""
    known = {
        "workflow.name": run.name,
        "workflow.uid": run.uid,
        "workflow.namespace": run.namespace,
        "workflow.creationTimestamp": timestamp(run.created),
        **{f"workflow.parameters.{name}": value for name, value in run.parameters.items()},
        **(more or {}),
    }
    return lambda name: _known(known, name)


def of_container(run: Run, inputs: NodeInputs, *, attempt: int | None = None) -> Text:
    """`workflow.*`, the template's own `inputs.parameters.*`, and for an attempt `retries`: how many came before it."""
    workflow = of_workflow(run)
    own = {f"inputs.parameters.{name}": value for name, value in inputs.values().items()}
    own |= {} if attempt is None else {"retries": str(attempt)}
    return lambda name: own[name] if name in own else workflow(name)


def of_task(run: Run, inputs: NodeInputs, node_of: Callable[[str], Node | None], *, left_out: str = "") -> Text:
    """Of a container, and `tasks.*.outputs.parameters.*`.

    Args:
        run: What runs.
        inputs: The DAG's own.
        node_of: A task's node.
        left_out: What a Skipped or Omitted task's output is: empty, as in Argo 4.0.5.
    """
    outer = of_container(run, inputs)

    def lookup(name: str) -> str:
        if not name.startswith("tasks."):
            return outer(name)
        _, task, *rest = name.split(".")
        value = output(node_of(task), rest[-1])
        return left_out if value is None else value

    return lookup


def output(node: Node | None, parameter: str) -> str | None:
    """A node's output parameter; None: the task was left out.

    Raises:
        StepError: The task has not ended or never gave it, which the checked order of tasks rules out.
    """
    if node is not None and node.phase in {"Skipped", "Omitted"}:
        return None
    values = node.outputs.values() if node is not None and node.outputs is not None else {}
    if parameter not in values:
        raise StepError(f"output {parameter} of {node.name if node else 'a task'} is asked for before it is there")
    return values[parameter]


def of_depends(nodes: Mapping[str, Node | None], members: Callable[[Node], list[Phase]]) -> Callable[[str], bool]:
    """`task.Succeeded` and its like; a bare task also holds when it was skipped, as in Argo.

    Args:
        nodes: Each task's node.
        members: The phases of a fan-out's members; none for any other node.
    """

    def lookup(name: str) -> bool:
        task, _, state = name.partition(".")
        node = nodes.get(task)
        if node is None:
            return False
        if state == "AnySucceeded":
            return "Succeeded" in members(node)
        if state == "AllFailed":
            return set(members(node)) == {"Failed"}
        return node.phase in {"Succeeded", "Skipped"} if not state else node.phase == STATES[state]

    return lookup


def nothing(name: str) -> str:
    """No name is known: after substitution a gate compares texts only."""
    raise InvalidInput(f"a text must stand in quotes; got {name}")


@lru_cache(maxsize=512)
def dependencies(task: DagTask) -> frozenset[str]:
    """The tasks that a task waits for."""
    if task.depends is None:
        return frozenset()
    return frozenset(name.partition(".")[0] for name in expression.names(task.depends))


def in_order(tasks: Mapping[str, DagTask]) -> list[DagTask]:
    """The tasks, each after those that it waits for.

    Raises:
        InvalidInput: They wait for each other.
    """
    try:
        order = TopologicalSorter({name: sorted(dependencies(task)) for name, task in tasks.items()}).static_order()
        return [tasks[name] for name in order]
    except CycleError as error:
        raise InvalidInput(f"tasks wait for each other: {' → '.join(error.args[1])}") from error


def last(tasks: Iterable[DagTask]) -> list[str]:
    """The tasks that no other waits for, by name."""
    tasks = list(tasks)
    waited_for = {name for task in tasks for name in dependencies(task)}
    return sorted(task.name for task in tasks if task.name not in waited_for)


def _known(known: Mapping[str, str], name: str) -> str:
    if name not in known:
        raise StepError(f"{{{{{name}}}}} is not known here; known are {sorted(known)}")
    return known[name]
