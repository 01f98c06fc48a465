"""What the control API knows, and how it says no: in the API server's own words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from seatrial import objects

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of object."""

    group: str
    version: str
    plural: str
    model: type[objects.InferenceService | objects.HTTPRoute]

    @property
    def name(self) -> str:
        """As manifests write it."""
        return self.model.__name__

    @property
    def resource(self) -> str:
        """As messages name it: `httproutes.gateway.networking.k8s.io`."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """As manifests write it."""
        return f"{self.group}/{self.version}"


SERVICES: Final = Kind("serving.kserve.io", "v1beta1", "inferenceservices", objects.InferenceService)
ROUTES: Final = Kind("gateway.networking.k8s.io", "v1", "httproutes", objects.HTTPRoute)
KINDS: Final = {(kind.group, kind.version, kind.plural): kind for kind in (SERVICES, ROUTES)}


@dataclass(frozen=True)
class Fault:
    """What is wrong in one field."""

    field: str
    reason: str
    message: str


@dataclass
class Refused(Exception):
    """A request that the API does not do."""

    code: int
    reason: str
    message: str
    faults: tuple[Fault, ...] = field(default=())

    def status(self) -> Manifest:
        """The body of kind Status. Source: apimachinery meta/v1 `Status`."""
        details = {
            "causes": [{"field": f.field, "reason": f.reason, "message": f.message} for f in self.faults],
        }
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
            **({"details": details} if self.faults else {}),
        }


def not_found(kind: Kind, name: str) -> Refused:
    """404."""
    return Refused(404, "NotFound", f'{kind.resource} "{name}" not found')


def already_exists(kind: Kind, name: str) -> Refused:
    """409 of a create."""
    return Refused(409, "AlreadyExists", f'{kind.resource} "{name}" already exists')


def conflict(kind: Kind, name: str) -> Refused:
    """409 of a change to an object that was read too long ago."""
    return Refused(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; please apply your '
        "changes to the latest version and try again",
    )


def bad_request(message: str) -> Refused:
    """400."""
    return Refused(400, "BadRequest", message)


def invalid(kind: Kind, name: str, faults: tuple[Fault, ...]) -> Refused:
    """422 with every fault."""
    listed = ", ".join(f"{fault.field}: {fault.message}" for fault in faults)
    return Refused(422, "Invalid", f'{kind.name}.{kind.group} "{name}" is invalid: {listed}', faults)
