"""The one loop: asks `advance` what is next, does it, and waits for a process, a signal, a lock or a moment."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from seatrial.app.runner.advance import advance, ended, outcome, running
from seatrial.app.runner.commands import Commands
from seatrial.app.runner.files import NodeFolder
from seatrial.app.runner.locks import Locks
from seatrial.app.runner.nodes import Node
from seatrial.app.runner.plan import Acquire, Action, Kill, Release, Run, Start, Wake
from seatrial.app.runner.processes import GRACE_S, Process, environment
from seatrial.app.runner.workflow import workflow
from seatrial.errors import StepError

TERMINATION_LOG: Final = "SEATRIAL_TERMINATION_LOG"
"""Tells a step where it may say why it failed."""
LOCK_S: Final = 0.05
"""Seconds between two tries for a lock that somebody else holds."""

Observe = Callable[[dict[str, Any]], None]


@dataclass
class Loop:
    """One run, being executed.

    Args:
        run: What runs.
        commands: Image → program.
        environment: ConfigMap or Secret → its keys and values.
        runs: The folder of all runs; this one's own is there already.
        locks: Locks between processes.
        observe: Gets the Workflow at each change.
        grace_s: Seconds between SIGTERM and SIGKILL.
    """

    run: Run
    commands: Commands
    environment: Mapping[str, Mapping[str, str]]
    runs: Path
    locks: Locks
    observe: Observe | None = None
    grace_s: float = GRACE_S
    nodes: dict[str, Node] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)

    def until_over(self) -> dict[str, Any]:
        """Run to the end and give back the finished Workflow."""
        shown: dict[str, Any] = {}
        with selectors.DefaultSelector() as self._selector, self._signals():
            try:
                while True:
                    actions = self._advance()
                    seen = workflow(self.run, self.nodes)
                    if seen != shown:
                        shown = seen
                        self._show(seen)
                    if outcome(self.run, self.nodes)[0] != "Running":
                        return seen
                    self._wait([action.at for action in actions if isinstance(action, Wake)])
            finally:
                self._clean()

    def _advance(self) -> list[Action]:
        """Advance until nothing more happens at this moment; what is left are the moments to wake at."""
        while True:
            self.nodes, actions = advance(self.run, self.nodes, time.time())
            changed = [self._do(action) for action in actions]
            if not any(changed):
                return actions

    def _do(self, action: Action) -> bool:
        """Whether doing it changed a node, so that something more may be next."""
        if isinstance(action, Start):
            return self._start(action)
        if isinstance(action, Acquire):
            self.waiting[action.node_id] = action.lock
            return self._try_locks()
        if isinstance(action, Release):
            self.locks.release(action.lock)
        if isinstance(action, Kill):
            self._kill(self.processes[action.node_id], at_once=action.at_once)
        return False

    # Steps

    def _folder(self, node: Node) -> NodeFolder:
        template = self.run.manifest.template(node.template_name)
        return NodeFolder(self.runs, self.runs / self.run.name / node.id, template)

    def _start(self, action: Start) -> bool:
        node = self.nodes[action.node_id]
        folder = self._folder(node)
        try:
            folder.prepare(node)
            process = self._process(folder, action)
        except StepError as error:
            self.nodes[node.id] = node.ended("Error", time.time(), str(error))
            return True
        self.processes[node.id] = process
        self._selector.register(process.descriptor, selectors.EVENT_READ, node.id)
        self.nodes[node.id] = running(node, time.time())
        return True

    def _process(self, folder: NodeFolder, action: Start) -> Process:
        container = folder.template.container
        if container is None:
            raise StepError(f"{folder.template.name} has no container")
        mounts = {mount: str(place) for mount, place in folder.mounts().items()}
        tmp = folder.path / "tmp"
        tmp.mkdir(parents=True, exist_ok=True)
        sources = [self.environment.get(source.source.name, {}) for source in container.env_from]
        # A variable that names a volume of the container names its folder here.
        own = {name: mounts.get(value, value) for name, value in action.variables.items()}
        own[TERMINATION_LOG] = str(folder.termination_log)
        return Process(
            [*self.commands[container.image], *action.args],
            variables=environment(tmp, *sources, own),
            folder=tmp,
            log=folder.path / "main.log",
        )

    def _ended(self, node_id: str) -> None:
        process = self.processes.pop(node_id)
        self._selector.unregister(process.descriptor)
        code = process.reap()
        node = self.nodes[node_id]
        folder = self._folder(node)
        outputs, fault = folder.outputs()
        self.nodes[node_id] = ended(node, code, outputs, time.time(), fault, words=folder.last_words())

    def _kill(self, process: Process, *, at_once: bool = False) -> None:
        process.signal(signal.SIGKILL if at_once else signal.SIGTERM)
        process.kill_at = None if at_once else time.time() + self.grace_s

    # Waiting

    def _wait(self, moments: list[float]) -> None:
        kills = [process.kill_at for process in self.processes.values() if process.kill_at is not None]
        ends = [*moments, *kills, *([time.time() + LOCK_S] if self.waiting else [])]
        if not ends and not self.processes:
            raise StepError(f"{self.run.name} waits for nothing and is not over")
        timeout = max(0.0, min(ends) - time.time()) if ends else None
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                os.read(key.fd, 4096)
            else:
                self._ended(key.data)
        for process in self.processes.values():
            if process.kill_at is not None and time.time() >= process.kill_at:
                self._kill(process, at_once=True)
        self._try_locks()

    def _try_locks(self) -> bool:
        got = False
        for node_id, lock in list(self.waiting.items()):
            if self.nodes[node_id].synchronization_status is None:  # it was given up
                del self.waiting[node_id]
            elif self.locks.acquire(lock):
                del self.waiting[node_id]
                self.nodes[node_id] = running(self.nodes[node_id], time.time())
                got = True
        return got

    # Signals

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the run, a second SIGINT terminates it; only the main thread can be told."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(reader, selectors.EVENT_READ, None)
        wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._signalled) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            os.close(reader)
            os.close(writer)

    def _signalled(self, number: int, _: object) -> None:
        again = number == signal.SIGINT and self.run.shutdown
        self.run = replace(self.run, shutdown="Terminate" if again else self.run.shutdown or "Stop")

    # The run's own record

    def _show(self, seen: dict[str, Any]) -> None:
        path = self.runs / self.run.name / "workflow.json"
        partial = path.with_name(".workflow.json.partial")
        partial.write_text(json.dumps(seen, indent=1), encoding="utf-8")
        partial.rename(path)
        if self.observe is not None:
            self.observe(seen)

    def _clean(self) -> None:
        """Nothing of this run stays: after a bug, too."""
        for process in self.processes.values():
            process.signal(signal.SIGKILL)
            process.reap()
        self.processes.clear()
        self.locks.release_all()
