"""What happens next in a run: a pure function of the manifest, the nodes and the time.

`advance` may be called at any moment and any number of times: what has been started stands in the nodes.
Source: workflow/controller/operator.go of Argo Workflows 4.0.5, as seen on a real controller.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from seatrial.app.runner import retries, scope, variables
from seatrial.app.runner.calls import Call, State
from seatrial.app.runner.dag import DagRun
from seatrial.app.runner.manifest import ExitHook
from seatrial.app.runner.nodes import UNSUCCESSFUL, Node, NodeOutputs, Nodes, Phase, Waiting, moment, timestamp
from seatrial.app.runner.plan import Acquire, Action, Kill, Release, Run, Wake

DEADLINE: Final = "Pod was active on the node longer than the specified deadline"


def advance(run: Run, nodes: Nodes, now: float) -> tuple[dict[str, Node], list[Action]]:
    """Everything that can be decided at `now`.

    Args:
        run: What runs.
        nodes: What has happened so far; empty at the start.
        now: Seconds since 1970.

    Returns:
        The nodes afterwards, and what the loop is to do. The run is over when `outcome` is not Running.
    """
    state = State(run=run, nodes=dict(nodes), now=now)
    entry = run.manifest.template(run.entrypoint)
    root = _execute(state, Call(entry, run.name, run.name, run.parameters))
    leave = run.manifest.spec.hooks.exit
    if leave is not None and root.fulfilled and (run.shutdown != "Terminate" or state.at(_exit_name(run))):
        _execute(state, _exit_call(state, leave, root))
    return state.nodes, state.actions


def outcome(run: Run, nodes: Nodes) -> tuple[Phase, str]:
    """The workflow's phase and message: the DAG's own, unless a stop or a failed exit handler makes it worse."""
    state = State(run=run, nodes=dict(nodes), now=run.created)
    root, leave = state.at(run.name), state.at(_exit_name(run))
    awaited = run.manifest.spec.hooks.exit is not None and run.shutdown != "Terminate"
    if root is None or not root.fulfilled or (awaited and leave is None) or (leave is not None and not leave.fulfilled):
        return "Running", ""
    if run.shutdown and root.phase in UNSUCCESSFUL:
        return root.phase, f"Stopped with strategy '{run.shutdown}'"
    if leave is not None and leave.phase in UNSUCCESSFUL and root.phase not in UNSUCCESSFUL:
        return leave.phase, leave.message
    return root.phase, root.message


def ended(node: Node, exit_code: int, outputs: NodeOutputs, now: float, fault: str = "", *, words: str = "") -> Node:
    """A running pod's node after its process has ended.

    Args:
        node: A message on it says why it was ended by us.
        exit_code: 128 + n when signal n ended it.
        outputs: What it left.
        now: Seconds since 1970.
        fault: Why its outputs cannot be used; empty: they can.
        words: Its termination message. Source: inferFailedReason of Argo Workflows 4.0.5.
    """
    node = node.but(outputs=outputs.model_copy(update={"exit_code": str(exit_code)}))
    if node.message:
        return node.ended("Failed", now, node.message)
    if exit_code != 0:
        return node.ended("Failed", now, f"main: Error (exit code {exit_code}){f': {words}' if words else ''}")
    return node.ended("Error", now, fault) if fault else node.ended("Succeeded", now)


def running(node: Node, now: float) -> Node:
    """A node whose process has started, or whose lock has come."""
    return node.but(phase="Running", message="", started_at=timestamp(now), synchronization_status=None)


def failures(nodes: Nodes) -> str:
    """`workflow.failures` as Argo gives it: a JSON list, quoted once more as a JSON text; `null` without a failure."""
    failed = [
        {
            "displayName": node.display_name,
            "message": node.message,
            "templateName": node.template_name,
            "phase": node.phase,
            "podName": node.id,
            "finishedAt": node.finished_at,
        }
        for node in nodes.values()
        if node.phase in UNSUCCESSFUL
    ]
    return json.dumps(json.dumps(failed or None))


def _exit_name(run: Run) -> str:
    return f"{run.name}.onExit"


def _exit_call(state: State, leave: ExitHook, root: Node) -> Call:
    run, name = state.run, _exit_name(state.run)
    lookup = scope.of_workflow(run, {"workflow.status": root.phase, "workflow.failures": failures(state.nodes)})
    values = {given.name: variables.replaced(given.value, lookup) for given in leave.arguments.parameters}
    return Call(run.manifest.template(leave.template), name, name, values, on_exit=True)


def _execute(state: State, call: Call) -> Node:
    """Bring one node as far as it goes now."""
    node = state.at(call.name)
    if node is not None and node.fulfilled:
        return node
    if call.template.lock is not None and (node is None or node.phase == "Pending"):
        return _wait_for_lock(state, call, node)
    if call.template.dag is not None:
        node = node or state.make(call, kind="DAG", phase="Running")
        node = DagRun(state, call, node.id, lambda inner: _execute(state, inner)).advance()
    elif call.template.retry_strategy is not None:
        node = _attempts(state, call, node)
    else:
        node = _pod(state, call, node)
    if call.template.lock is not None and node.fulfilled:
        state.actions.append(Release(_lock(state, call, node)))
    return node


def _lock(state: State, call: Call, node: Node) -> str:
    name = variables.replaced(call.template.lock or "", scope.of_container(state.run, node.inputs))
    return f"{state.run.namespace}/Mutex/{name}"


def _wait_for_lock(state: State, call: Call, node: Node | None) -> Node:
    if node is None:
        node = state.make(call, kind="DAG", phase="Pending")
        lock = _lock(state, call, node)
        state.actions.append(Acquire(node.id, lock))
        message = f"Waiting for {lock} lock. Lock status: 0/1"
        node = state.put(node.but(message=message, synchronization_status=Waiting(waiting=lock)))
    why = state.halted(call)
    if why and state.run.shutdown and call.boundary is not None:
        return state.put(node.but(synchronization_status=None))  # it stays Pending, and its DAG fails without it
    return state.put(node.ended("Failed", state.now, why)) if why else node


def _pod(state: State, call: Call, node: Node | None, *, name: str = "", attempt: int | None = None) -> Node:
    """Start it, or let it run unless its time is up; a message on a running pod says why it is being ended."""
    why = state.halted(call)
    if node is None:
        if why:
            return state.put(state.make(call, name=name, kind="Pod", phase="Pending").ended("Failed", state.now, why))
        return state.start(call, name=name, attempt=attempt)
    limit_s = call.template.active_deadline_seconds
    if not why and limit_s is not None and node.phase == "Running" and not node.message:
        ends = moment(node.started_at or timestamp(state.now)) + limit_s
        why = DEADLINE if state.now >= ends else ""
        state.actions.extend([] if why else [Wake(ends)])
    why = why.replace("strategy: ", "strategy:  ")  # Argo's own two blanks, where a pod was running
    at_once = state.run.shutdown == "Terminate"
    if why and (not node.message or (at_once and node.message != why)):
        state.actions.append(Kill(node.id, at_once=at_once))
        return state.put(node.but(message=why))
    return node


def _no_other(state: State, call: Call) -> str:
    """Why there may be no other attempt, in Argo's words; empty: there may."""
    if not state.halted(call):
        return ""
    if state.run.shutdown:
        return f"Stopped with strategy '{state.run.shutdown}'"
    ends = int(state.run.created) + (state.run.manifest.spec.active_deadline_seconds or 0)
    return f"retry exceeded workflow deadline {datetime.fromtimestamp(ends, UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"


def _attempts(state: State, call: Call, node: Node | None) -> Node:
    """One attempt after the other, until one succeeds or no other may cure it."""
    node = node or state.make(call, kind="Retry", phase="Running")
    attempts = [state.nodes[child] for child in node.children]
    if attempts and not attempts[-1].fulfilled:
        _pod(state, call, attempts[-1])
        return node
    strategy = call.template.retry_strategy
    if attempts and strategy is not None:
        verdict = retries.judge(strategy, attempts, stopped=_no_other(state, call))
        if isinstance(verdict, retries.Over):
            over = node.but(outputs=attempts[-1].outputs)
            return state.put(over.ended(verdict.phase, state.now, verdict.message))
        if verdict.at > state.now:
            state.actions.append(Wake(verdict.at))
            return state.put(node.but(message=verdict.message))
    attempt = _pod(state, call, None, name=f"{call.name}({len(attempts)})", attempt=len(attempts))
    node = state.put(node.but(children=(*node.children, attempt.id), message=""))
    return _attempts(state, call, node) if attempt.fulfilled else node
