"""InferenceServices and HTTPRoutes in memory, as the API server keeps them: versions, conflicts, closed fields.

The contract suite runs against these and against the real adapters alike.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from seatrial import objects
from seatrial.errors import Conflict, IntegrityError, InvalidInput
from seatrial.names import kebab
from seatrial.ports import Manifest


class _Memory:
    """Objects of one kind by name."""

    def __init__(self, model: type[objects.InferenceService | objects.HTTPRoute]) -> None:
        self.objects: dict[str, Manifest] = {}
        self._model = model
        self._versions = itertools.count(1)

    def get(self, name: str) -> Manifest | None:
        return copy.deepcopy(self.objects.get(name))

    def _keep(self, manifest: Manifest) -> None:
        try:
            self._model.model_validate(manifest)
        except ValidationError as error:
            paths = [".".join(map(str, fault["loc"])) for fault in error.errors()]
            raise InvalidInput(f"refused: {paths}") from error
        kept = copy.deepcopy(manifest)
        kept["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[manifest["metadata"]["name"]] = kept

    def _at(self, name: str, resource_version: str) -> Manifest:
        found = self.objects.get(name)
        if found is None or found["metadata"]["resourceVersion"] != resource_version:
            raise Conflict(f"{name} changed, or is gone, since it was read at {resource_version}")
        return found


class MemoryServices(_Memory):
    """The port `Services`; `become` plays the controller."""

    def __init__(self) -> None:
        super().__init__(objects.InferenceService)

    def create(self, manifest: Manifest) -> None:
        found = self.objects.get(manifest["metadata"]["name"])
        if found is None:
            self._keep(manifest)
        elif any(found[part] != manifest[part] for part in ("kind", "spec")):
            raise IntegrityError(f"another {manifest['metadata']['name']} is there")

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)

    def names(self, model_name: str) -> list[str]:
        wanted = kebab(model_name)
        found = self.objects.items()
        return sorted(name for name, o in found if o["metadata"].get("labels", {}).get("seatrial.dev/model") == wanted)

    def become(self, name: str, status: Mapping[str, Any]) -> None:
        """Write the status that the controller would."""
        self._keep({**self.objects[name], "status": dict(status)})


class MemoryRoutes(_Memory):
    """The port `Routes`."""

    def __init__(self) -> None:
        super().__init__(objects.HTTPRoute)

    def create(self, manifest: Manifest) -> None:
        if manifest["metadata"]["name"] in self.objects:
            raise Conflict(f"{manifest['metadata']['name']} is taken")
        self._keep(manifest)

    def replace(self, name: str, patch: Manifest, *, resource_version: str) -> None:
        self._keep(_merged(self._at(name, resource_version), patch))

    def delete(self, name: str, *, resource_version: str) -> None:
        self._at(name, resource_version)
        del self.objects[name]


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
