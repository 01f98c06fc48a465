"""Fields of a rendered template that mean nothing on one machine: path → why. Everything else is obeyed or refused."""

from __future__ import annotations

from typing import Any, Final

REASONS: Final[dict[str, str]] = {
    "metadata.annotations": "for people in the Argo UI",
    "spec.arguments.parameters[].description": "for people in the Argo UI",
    "spec.arguments.parameters[].enum": "for the Argo UI; the controller enforces no enum, resolve-release does",
    "spec.archiveLogs": "a step's log lies beside its files anyway",
    "spec.podGC": "no pod stays behind",
    "spec.podPriorityClassName": "no scheduler chooses among pods",
    "spec.ttlStrategy": "runs are files: they stay until somebody removes them",
    "spec.templates[].metadata": "for people in the Argo UI",
    "spec.templates[].serviceAccountName": "no API server asks who a process is; credentials come with the environment",
    "spec.templates[].automountServiceAccountToken": "as serviceAccountName",
    "spec.templates[].priorityClassName": "as podPriorityClassName",
    "spec.templates[].executor": "nothing of Argo's runs beside a step",
    "spec.templates[].securityContext": "a process of the person who started the run, with that person's rights",
    "spec.templates[].inputs.parameters[].description": "for people in the Argo UI",
    "spec.templates[].outputs.parameters[].description": "for people in the Argo UI",
    "spec.templates[].inputs.artifacts[].archive": "files are linked, not sent",
    "spec.templates[].outputs.artifacts[].archive": "files are linked, not sent",
    "spec.templates[].volumes[].secret": "registry credentials; the local builder pushes into a folder",
    "spec.templates[].container.command": "the image's table says which program it is here",
    "spec.templates[].container.resources": "the machine is shared, not divided; only a served Triton is limited",
    "spec.templates[].container.securityContext": "as the template's",
    "spec.templates[].container.volumeMounts[].readOnly": "only credentials are mounted so, and they are not here",
}


def without(document: dict[str, Any]) -> dict[str, Any]:
    """A copy of `document` without the fields in `REASONS`."""
    return _pruned(document, "")  # type: ignore[no-any-return]


def _pruned(value: Any, path: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    if isinstance(value, dict):
        kept = {key: (f"{path}.{key}" if path else str(key)) for key in value}
        return {key: _pruned(value[key], place) for key, place in kept.items() if place not in REASONS}
    if isinstance(value, list):
        return [_pruned(item, f"{path}[]") for item in value]
    return value
