"""Small workflow templates, a run without processes, and one with stand-ins for the steps."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from seatrial.app import runner
from seatrial.app.runner import manifest
from seatrial.app.runner.advance import advance, ended, outcome, running
from seatrial.app.runner.nodes import Node, NodeArtifact, NodeOutputs, NodeParameter, StoredAt
from seatrial.app.runner.plan import Acquire, Action, Kill, Release, Run, Shutdown, Start, Wake

STAND_IN = Path(__file__).parent / "stand_in.py"
START = 1_000_000.0


def pod(name: str, *, outputs: Mapping[str, str | None] | None = None, **more: Any) -> dict[str, Any]:
    """A container template with output parameters (name → default) and an input for each `{{inputs.…}}` in args."""
    values = [
        {"name": key, "valueFrom": {"path": f"/io/out/params/{key}"} | ({} if text is None else {"default": text})}
        for key, text in (outputs or {}).items()
    ]
    container = {
        "image": f"seatrial/{name}",
        "command": ["python3"],
        "args": more.pop("args", []),
        "env": [{"name": "SEATRIAL_IO", "value": "/io"}],
        "envFrom": [{"configMapRef": {"name": "play"}}],
        "volumeMounts": [{"name": "io", "mountPath": "/io"}, {"name": "tmp", "mountPath": "/tmp"}],
    }
    volumes = [{"name": "io", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    inputs = more.pop("inputs", {})
    files = more.pop("files", {})
    return {
        "name": name,
        "container": container,
        "volumes": volumes,
        "inputs": inputs,
        "outputs": {"parameters": values, **files},
        **more,
    }


def dag(name: str, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "dag": {"tasks": list(tasks)}, **more}


def task(
    name: str, after: str | None = None, *, when: str | None = None, template: str = "", **values: str
) -> dict[str, Any]:
    """A task; `after` is a whole `depends`, values become arguments (`_` for `-`)."""
    made: dict[str, Any] = {"name": name, "template": template or name}
    if after:
        made["depends"] = after
    if when:
        made["when"] = when
    if values:
        made["arguments"] = {
            "parameters": [{"name": key.replace("_", "-"), "value": text} for key, text in values.items()]
        }
    return made


def document(*templates: dict[str, Any], parameters: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A WorkflowTemplate whose entrypoint is the first template."""
    asked = [{"name": key, "value": text} for key, text in (parameters or {}).items()]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTemplate",
        "metadata": {"name": "w"},
        "spec": {
            "entrypoint": templates[0]["name"],
            "arguments": {"parameters": asked},
            "templates": list(templates),
            **more,
        },
    }


class Simulation:
    """A run in which processes are only said to have ended; time stands still unless it is moved."""

    def __init__(self, made: dict[str, Any], *, parameters: Mapping[str, str] | None = None) -> None:
        read = manifest.read(made)
        self.run = Run(read, "w-1", "uid-1", "seatrial", parameters or {}, read.spec.entrypoint, START)
        self.nodes: dict[str, Node] = {}
        self.now = START
        self.started: list[Start] = []
        self.actions: list[Action] = []
        self.held: set[str] = set()
        self.free = True

    def advance(self) -> list[Action]:
        """Advance, start what is to be started, take locks if they are free; the actions of this call."""
        seen: list[Action] = []
        while True:
            self.nodes, actions = advance(self.run, self.nodes, self.now)
            seen += actions
            changed = [self._do(action) for action in actions]
            if not any(changed):
                self.actions += seen
                return seen

    def _do(self, action: Action) -> bool:
        if isinstance(action, Start):
            self.started.append(action)
            self.nodes[action.node_id] = running(self.nodes[action.node_id], self.now)
            return True
        if isinstance(action, Acquire) and self.free:
            self.held.add(action.lock)
            self.nodes[action.node_id] = running(self.nodes[action.node_id], self.now)
            return True
        if isinstance(action, Release):
            self.held.remove(action.lock)
        return False

    def stop(self, how: Shutdown = "Stop") -> list[Action]:
        self.run = Run(**{**self.run.__dict__, "shutdown": how})
        return self.advance()

    def later(self, seconds: float) -> list[Action]:
        self.now += seconds
        return self.advance()

    def node(self, name: str) -> Node:
        """The only node with that display name."""
        (found,) = [node for node in self.nodes.values() if node.display_name == name]
        return found

    def phase(self, name: str) -> str:
        return self.node(name).phase

    def phases(self) -> dict[str, str]:
        return {node.display_name: node.phase for node in self.nodes.values()}

    def up(self) -> list[str]:
        """Display names of the pods that run."""
        return [node.display_name for node in self.nodes.values() if node.type == "Pod" and node.phase == "Running"]

    def end(self, name: str, code: int = 0, *, files: Iterable[str] = (), **params: str) -> list[Action]:
        """A pod ends; then advance."""
        node = self.node(name)
        assert node.phase == "Running", (name, node.phase)
        outputs = NodeOutputs(
            parameters=tuple(NodeParameter(name=key.replace("_", "-"), value=text) for key, text in params.items()),
            artifacts=tuple(
                NodeArtifact(name=f, path=f"/io/out/{f}", s3=StoredAt(key=f"{node.id}/{f}")) for f in files
            ),
        )
        self.nodes[node.id] = ended(node, code, outputs, self.now)
        return self.advance()

    @property
    def outcome(self) -> tuple[str, str]:
        return outcome(self.run, self.nodes)


def kills(actions: Iterable[Action]) -> list[Kill]:
    return [action for action in actions if isinstance(action, Kill)]


def wakes(actions: Iterable[Action]) -> list[float]:
    """Seconds after the start at which to ask again."""
    return [action.at - START for action in actions if isinstance(action, Wake)]


class Stage:
    """Real processes: every image is the stand-in, which does what the play says."""

    def __init__(self, folder: Path, play: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.set(play or {})

    def set(self, play: Mapping[str, Any]) -> None:
        (self.folder / "play.json").write_text(json.dumps(play))

    def arguments(self, made: dict[str, Any], **more: Any) -> dict[str, Any]:
        """What `runner.run` is given."""
        containers = [t for t in made["spec"]["templates"] if "container" in t]
        sources = [next(iter(s.values()))["name"] for t in containers for s in t["container"].get("envFrom", [])]
        return {
            "parameters": {},
            "environment": {name: {"PLAY": str(self.folder / "play.json")} for name in sources},
            "runs": self.folder / "runs",
            "locks": self.folder / "locks",
            "commands": {t["container"]["image"]: [sys.executable, str(STAND_IN), t["name"]] for t in containers},
            **more,
        }

    def run(self, made: dict[str, Any], **more: Any) -> dict[str, Any]:
        return runner.run(made, **self.arguments(made, **more))

    def seen(self, name: str) -> dict[str, Any]:
        """What the stand-in of that template saw last."""
        return json.loads((self.folder / f"{name}.seen.json").read_text())  # type: ignore[no-any-return]

    def attempts(self, name: str) -> int:
        path = self.folder / f"{name}.attempts"
        return int(path.read_text()) if path.exists() else 0

    def when_up(self, *names: str) -> Callable[[], bool]:
        return lambda: all((self.folder / f"{name}.up").exists() for name in names)


def phases(workflow: dict[str, Any]) -> dict[str, str]:
    """Display name → phase."""
    return {node["displayName"]: node["phase"] for node in workflow["status"]["nodes"].values()}
