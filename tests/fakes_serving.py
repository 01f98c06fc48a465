"""A cluster, a gateway, a store, sources and runs in memory, with the behaviour that the steps rely on."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from seatrial.errors import Conflict, IntegrityError, InvalidInput, Unavailable
from seatrial.names import kebab, version_of
from seatrial.ports import Answer, Manifest

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMESPACE = "seatrial"


class Killed(BaseException):
    """The process dies here: nothing after it runs, no `except Exception` sees it."""


class FakeClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@dataclass
class Deadly:
    """Lets the first `survive` outside effects happen, then kills the process right after the next one."""

    survive: int | None = None
    effects: list[str] = field(default_factory=list)

    def after(self, effect: str) -> None:
        self.effects.append(effect)
        if self.survive is not None and len(self.effects) > self.survive:
            self.survive = None
            raise Killed(effect)


class MemoryStore:
    """An object store that can be away."""

    def __init__(self, deadly: Deadly | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.away = False
        self._deadly = deadly or Deadly()

    def read(self, key: str) -> bytes | None:
        self._answer()
        return self.objects.get(key)

    def write(self, key: str, data: bytes) -> None:
        self._answer()
        self.objects[key] = data
        self._deadly.after(f"write {key}")

    def write_once(self, key: str, data: bytes) -> bool:
        self._answer()
        if key in self.objects:
            return False
        self.objects[key] = data
        self._deadly.after(f"write {key}")
        return True

    def keys(self, prefix: str) -> list[str]:
        self._answer()
        return sorted(key for key in self.objects if key.startswith(prefix))

    def json(self, key: str) -> Any:
        return json.loads(self.objects[key])

    def _answer(self) -> None:
        if self.away:
            raise Unavailable("the store is away")


class MemoryRoutes:
    """HTTPRoutes with resource versions, as the API keeps them; its defaults are filled in on the way out."""

    def __init__(self, deadly: Deadly | None = None) -> None:
        self.objects: dict[str, Manifest] = {}
        self.before_write: list[Callable[[], None]] = []
        """Called one after the other, one before each write: somebody else is faster, or the API is away."""
        self.lose_answers = 0
        self._deadly = deadly or Deadly()
        self._versions = itertools.count(100)

    def get(self, name: str) -> Manifest | None:
        found = copy.deepcopy(self.objects.get(name))
        for rule in (found or {}).get("spec", {}).get("rules", ()):
            for backend in rule["backendRefs"]:
                backend.setdefault("group", "")
                backend.setdefault("kind", "Service")
        return found

    def create(self, manifest: Manifest) -> None:
        self._interfere()
        name = manifest["metadata"]["name"]
        if name in self.objects:
            raise Conflict(f"{name} exists")
        self._keep(name, copy.deepcopy(manifest))
        self._wrote(f"create route {name}")

    def replace(self, name: str, patch: Manifest, *, resource_version: str) -> None:
        self._interfere()
        self._keep(name, merged(self._checked(name, resource_version), patch))
        self._wrote(f"patch route {name}")

    def delete(self, name: str, *, resource_version: str) -> None:
        self._interfere()
        self._checked(name, resource_version)
        del self.objects[name]
        self._wrote(f"delete route {name}")

    def models(self) -> list[str]:
        return models_of(self.objects)

    def by_hand(self, name: str, weights: Mapping[str, int]) -> None:
        """Somebody edits the weights of the last rule with kubectl."""
        manifest = copy.deepcopy(self.objects[name])
        manifest["spec"]["rules"][-1]["backendRefs"] = [
            {"name": backend, "port": 80, "weight": weight} for backend, weight in weights.items()
        ]
        self._keep(name, manifest)

    def _checked(self, name: str, resource_version: str) -> Manifest:
        found = self.objects.get(name)
        if found is None or found["metadata"]["resourceVersion"] != resource_version:
            raise Conflict(f"{name} changed")
        return found

    def _keep(self, name: str, manifest: Manifest) -> None:
        manifest["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[name] = manifest

    def _interfere(self) -> None:
        if self.before_write:
            self.before_write.pop(0)()

    def _wrote(self, effect: str) -> None:
        self._deadly.after(effect)
        if self.lose_answers:
            self.lose_answers -= 1
            raise Unavailable("the connection broke after the write")


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch, RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class MemoryServices:
    """InferenceServices that become ready when they are looked at for the third time, or as a test says."""

    def __init__(self, deadly: Deadly | None = None) -> None:
        self.objects: dict[str, Manifest] = {}
        self.looks = 0
        self.status: Callable[[Manifest, int], Manifest] = lambda manifest, look: ready(manifest) if look > 2 else {}
        self._deadly = deadly or Deadly()

    def get(self, name: str) -> Manifest | None:
        if name not in self.objects:
            return None
        self.looks += 1
        found = copy.deepcopy(self.objects[name])
        return {**found, "status": self.status(found, self.looks)}

    def create(self, manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        found = self.objects.get(name)
        if found is not None and found["spec"] != manifest["spec"]:
            raise IntegrityError(f"another {name} is there")
        if found is None:
            self.objects[name] = merged(manifest, {"metadata": {"generation": 1}})
            self._deadly.after(f"create service {name}")

    def delete(self, name: str) -> None:
        if self.objects.pop(name, None) is not None:
            self._deadly.after(f"delete service {name}")

    def names(self, model_name: str) -> list[str]:
        return sorted(
            name
            for name, manifest in self.objects.items()
            if manifest["metadata"].get("labels", {}).get("seatrial.dev/model") == kebab(model_name)
        )

    def models(self) -> list[str]:
        return models_of(self.objects)

    def put(self, model_name: str, version: int) -> None:
        """A service that stands there already."""
        name = f"{kebab(model_name)}-v{version}"
        metadata = {"name": name, "labels": {"seatrial.dev/model": kebab(model_name)}, "generation": 1}
        self.objects[name] = {"metadata": metadata, "spec": {}}


def models_of(objects: Mapping[str, Manifest]) -> list[str]:
    """The models that objects are labelled with."""
    labels = {o["metadata"].get("labels", {}).get("seatrial.dev/model", "") for o in objects.values()}
    return sorted(label.replace("-", "_") for label in labels if label)


def ready(manifest: Manifest, **status: Any) -> Manifest:
    """A status that is truly ready, with changes."""
    replicas = manifest["spec"].get("predictor", {}).get("minReplicas", 1)
    at = "2026-01-01T12:00:10Z"
    whole: Manifest = {
        "observedGeneration": 1,
        "conditions": [
            {"type": "PredictorReady", "status": "True", "lastTransitionTime": at},
            {"type": "Ready", "status": "True", "lastTransitionTime": at},
        ],
        "modelStatus": {
            "transitionStatus": "UpToDate",
            "states": {"activeModelState": "Loaded", "targetModelState": "Loaded"},
            "copies": {"totalCopies": replicas, "failedCopies": 0},
        },
    }
    return {**whole, **status}


def always(status: Manifest) -> Callable[[Manifest, int], Manifest]:
    """A service whose status does not move."""
    return lambda *_: status


class RoutedPredictions:
    """Answers as the route says: by header the candidate, else each version its share, in turn."""

    def __init__(self, routes: MemoryRoutes, answers: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        """Answers by request id."""
        self._routes = routes
        self._answers = answers
        self.asked = 0
        self.delay = 0
        """Answers for which the gateway still follows the route as it was before."""
        self.dead = False
        self.wrong: dict[int, Answer] = {}
        """What a version gives instead of the right answer."""
        self._stale: Manifest | None = None

    def ask(self, model_name: str, request: bytes, *, arm: str | None = None) -> Answer:
        self.asked += 1
        if self.dead:
            return Answer(status=0, version=None, error="connection refused")
        route = self._followed(kebab(model_name))
        service = self._backend(route, arm) if route else None
        if service is None:
            return Answer(status=404, version=None, error="404 page not found")
        version = version_of(service)
        outputs = self._answers.get(json.loads(request).get("id", ""), {})
        return self.wrong.get(version, Answer(status=200, version=version, outputs=outputs))

    def _followed(self, name: str) -> Manifest | None:
        if self.delay > 0:
            self.delay -= 1
            return self._stale
        self._stale = self._routes.get(name)
        return self._stale

    def _backend(self, route: Manifest, arm: str | None) -> str | None:
        for rule in route["spec"]["rules"]:
            if any(match.get("headers") for match in rule["matches"]) and arm != "canary":
                continue
            turn = self.asked % 100
            for backend in rule["backendRefs"]:
                turn -= backend["weight"] if len(rule["backendRefs"]) > 1 else 100
                if turn < 0:
                    return str(backend["name"])
        return None


class MemoryWorkflows:
    """Runs by name; None: the API is away."""

    def __init__(self, runs: Mapping[str, Manifest] | None) -> None:
        self.runs = runs

    def get(self, name: str) -> Manifest | None:
        if self.runs is None:
            raise Unavailable("the API server is away")
        return self.runs.get(name)


class FolderSources:
    """Models' folders from memory: model → file → text."""

    def __init__(self, folders: dict[str, dict[str, str]]) -> None:
        self.folders = folders

    def models(self, revision: str) -> list[str]:
        return sorted(self.folders)

    def export(self, model_name: str, revision: str, into: Path) -> str:
        if model_name not in self.folders:
            raise InvalidInput(f"no {model_name}")
        for name, text in self.folders[model_name].items():
            into.mkdir(parents=True, exist_ok=True)
            (into / name).write_text(text, encoding="utf-8")
        return revision or "worktree"
