"""The objects, as the API server keeps them: resourceVersion, generation, conflicts. Files underneath."""

from __future__ import annotations

import copy
import json
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seatrial.app.sandbox.control.admission import admit, immutable
from seatrial.app.sandbox.control.kinds import (
    KINDS,
    Kind,
    Manifest,
    already_exists,
    bad_request,
    conflict,
    not_found,
)
from seatrial.app.sandbox.places import read_json, write_json


class Objects:
    """All objects of one namespace; safe to use from several threads."""

    def __init__(self, folder: Path, namespace: str, *, changed: Callable[[Kind], None] = lambda _: None) -> None:
        self._folder = folder
        self._namespace = namespace
        self._changed = changed
        self.lock = threading.RLock()
        self._counter = folder / "resource-version.json"
        self._objects: dict[str, dict[str, Manifest]] = {kind.plural: self._load(kind) for kind in KINDS.values()}
        known = [int(o["metadata"]["resourceVersion"]) for kept in self._objects.values() for o in kept.values()]
        self._version = max([int(str(read_json(self._counter).get("last", 0))), *known])

    def get(self, kind: Kind, name: str) -> Manifest:
        """The object. Raises Refused (404)."""
        with self.lock:
            found = self._objects[kind.plural].get(name)
            if found is None:
                raise not_found(kind, name)
            return copy.deepcopy(found)

    def list(self, kind: Kind, selects: Callable[[dict[str, str]], bool] = lambda _: True) -> list[Manifest]:
        """Every object whose labels `selects` likes, by name."""
        with self.lock:
            found = [
                o for _, o in sorted(self._objects[kind.plural].items()) if selects(o["metadata"].get("labels", {}))
            ]
            return copy.deepcopy(found)

    @property
    def version(self) -> str:
        """The latest resourceVersion given out."""
        with self.lock:
            return str(self._version)

    def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Store a new object and give it back with the server's fields. Raises Refused."""
        if manifest.get("metadata", {}).get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        new = copy.deepcopy(manifest)
        new.pop("status", None)
        new.setdefault("metadata", {}).setdefault("namespace", self._namespace)
        for field in ("uid", "generation", "creationTimestamp"):
            new["metadata"].pop(field, None)
        admit(kind, new, self._namespace)
        with self.lock:
            name = new["metadata"]["name"]
            if name in self._objects[kind.plural]:
                raise already_exists(kind, name)
            new["metadata"] |= {
                "uid": str(uuid.uuid4()),
                "generation": 1,
                "creationTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            return self._keep(kind, new)

    def patch(self, kind: Kind, name: str, patch: Manifest) -> Manifest:
        """Merge-patch an object; a patch that changes nothing changes no resourceVersion. Raises Refused.

        Source: RFC 7396; Kubernetes API concepts, "resourceVersion in a patch".
        """
        with self.lock:
            old = self.get(kind, name)
            wanted = (
                patch.get("metadata", {}).get("resourceVersion") if isinstance(patch.get("metadata"), dict) else None
            )
            if wanted is not None and str(wanted) != old["metadata"]["resourceVersion"]:
                raise conflict(kind, name)
            new = merged(old, {key: value for key, value in patch.items() if key != "status"})
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            new["metadata"]["generation"] = old["metadata"]["generation"]
            immutable(kind, old, new)
            admit(kind, new, self._namespace, patched=True)
            if new == old:
                return old
            if new["spec"] != old["spec"]:
                new["metadata"]["generation"] += 1
            return self._keep(kind, new)

    def set_status(self, kind: Kind, name: str, uid: str, status: Manifest) -> None:
        """Replace the status, if the object is still there and the status differs."""
        with self.lock:
            old = self._objects[kind.plural].get(name)
            if old is not None and old["metadata"]["uid"] == uid and old.get("status") != status:
                self._keep(kind, {**copy.deepcopy(old), "status": copy.deepcopy(status)}, announce=False)

    def delete(self, kind: Kind, name: str, preconditions: Manifest) -> Manifest:
        """Remove an object and give it back. Raises Refused."""
        with self.lock:
            old = self.get(kind, name)
            for field in ("resourceVersion", "uid"):
                if preconditions.get(field) not in {None, old["metadata"][field]}:
                    raise conflict(kind, name)
            self._file(kind, name).unlink(missing_ok=True)
            del self._objects[kind.plural][name]
            self._next_version()
            self._changed(kind)
            return old

    def _keep(self, kind: Kind, manifest: Manifest, *, announce: bool = True) -> Manifest:
        manifest["metadata"]["resourceVersion"] = self._next_version()
        name = manifest["metadata"]["name"]
        write_json(self._file(kind, name), manifest)
        self._objects[kind.plural][name] = manifest
        if announce:
            self._changed(kind)
        return copy.deepcopy(manifest)

    def _next_version(self) -> str:
        self._version += 1
        write_json(self._counter, {"last": self._version})
        return str(self._version)

    def _file(self, kind: Kind, name: str) -> Path:
        return self._folder / kind.plural / f"{name}.json"

    def _load(self, kind: Kind) -> dict[str, Manifest]:
        folder = self._folder / kind.plural
        folder.mkdir(parents=True, exist_ok=True)
        return {path.stem: json.loads(path.read_text()) for path in folder.glob("[!.]*.json")}


def merged(target: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON value
    """`target` under a JSON merge patch; null removes. Source: RFC 7396 section 2."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
