"""What the control API lets in: exactly what we render, and nothing that KServe wrongly accepts.

Unknown fields are refused by their path, as the API server does under fieldValidation=Strict. The other checks are for
what facts of KServe 0.20 show to be accepted and then not to work.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from pydantic import ValidationError

from seatrial import names
from seatrial.app.sandbox.control.kinds import SERVICES, Fault, Kind, Manifest, bad_request, invalid
from seatrial.errors import InvalidInput, shortened
from seatrial.objects import Container, InferenceService

_UNITS: Final = {"m": Decimal("0.001"), "Ki": Decimal(1024), "Mi": Decimal(1024**2), "Gi": Decimal(1024**3)}

_ANNOTATIONS: Final = {
    "serving.kserve.io/deploymentMode": frozenset({"Standard", "RawDeployment"}),
    "serving.kserve.io/autoscalerClass": frozenset({"none", "external"}),
}
"""Values that work: KServe takes any deployment mode, and autoscalers whose CRDs are not there."""


def amount(quantity: str) -> Decimal:
    """A Kubernetes quantity as a number: `500m` → 0.5, `1Ki` → 1024."""
    for unit, factor in _UNITS.items():
        if quantity.endswith(unit):
            return Decimal(quantity.removesuffix(unit)) * factor
    return Decimal(quantity)


def admit(kind: Kind, manifest: Manifest, namespace: str, *, patched: bool = False) -> None:
    """Let the object pass, or raise.

    Args:
        kind: Of the object.
        manifest: The whole object, as it would be kept.
        namespace: Of the request.
        patched: Whether it comes of a patch; the API server has another word for unknown fields then.

    Raises:
        Refused: 400 for an object without its kind, or a new one with an unknown field; 422 for everything else. Each
            fault is named by its path.
    """
    for field in ("kind", "apiVersion"):
        if not manifest.get(field):
            raise bad_request(f"Object '{field[:1].upper()}{field[1:]}' is missing in the object provided")
    name = str(manifest.get("metadata", {}).get("name", ""))
    try:
        parsed = kind.model.model_validate(manifest)
    except ValidationError as error:
        raise _refusal(kind, name, error, patched=patched) from error
    faults = []
    if parsed.metadata.namespace != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if isinstance(parsed, InferenceService):
        faults = _faults(parsed)
    if faults:
        raise invalid(kind, name, tuple(faults))


def _refusal(kind: Kind, name: str, error: ValidationError, *, patched: bool) -> Exception:
    found = error.errors(include_url=False)
    unknown = [_path(fault["loc"]) for fault in found if fault["type"] == "extra_forbidden"]
    if unknown and not patched:
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        return bad_request(
            f"{kind.name} in version {kind.version!r} cannot be handled: strict decoding error: {listed}"
        )
    return invalid(kind, name, tuple(_fault(fault) for fault in found))


def _fault(fault: Any) -> Fault:  # noqa: ANN401 - pydantic's ErrorDetails
    path = _path(fault["loc"])
    if fault["type"] == "missing":
        return Fault(path, "FieldValueRequired", "Required value")
    value = shortened(repr(fault["input"]))
    return Fault(path, "FieldValueInvalid", f"Invalid value: {value}: {fault['msg']}")


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def _faults(service: InferenceService) -> list[Fault]:
    container = service.spec.predictor.containers[0]
    return [*_name_faults(service), *_annotation_faults(service), *_container_faults(container)]


def _name_faults(service: InferenceService) -> list[Fault]:
    """KServe takes 60 characters and then cannot label its pods. Source: kserve#4807."""
    name, namespace = service.metadata.name, service.metadata.namespace
    label = f"{name}-predictor-{namespace}"
    faults = []
    if len(label) > names.DNS_LABEL_MAX:
        message = f"Invalid value: {name!r}: the label {label!r} may have at most {names.DNS_LABEL_MAX} characters"
        faults.append(Fault("metadata.name", "FieldValueInvalid", message))
    try:
        names.version_of(name)
    except InvalidInput as error:
        faults.append(Fault("metadata.name", "FieldValueInvalid", f"Invalid value: {name!r}: {error}"))
    return faults


def _annotation_faults(service: InferenceService) -> list[Fault]:
    return [
        Fault(
            f"metadata.annotations[{key}]",
            "FieldValueNotSupported",
            f"Unsupported value: {shortened(repr(service.metadata.annotations[key]))}: supported: {sorted(good)}",
        )
        for key, good in _ANNOTATIONS.items()
        if service.metadata.annotations.get(key) not in {None, *good}
    ]


def _container_faults(container: Container) -> list[Fault]:
    where = "spec.predictor.containers[0]"
    faults = []
    for resource, wanted in container.resources.requests.items():
        limit = container.resources.limits.get(resource)
        if limit is not None and amount(wanted) > amount(limit):
            message = f"Invalid value: {wanted!r}: must be less than or equal to {resource} limit of {limit}"
            faults.append(Fault(f"{where}.resources.requests", "FieldValueInvalid", message))
    ports = {port.container_port for port in container.ports}
    for kind in ("startup", "readiness", "liveness"):
        port = getattr(container, f"{kind}_probe").http_get.port
        if port not in ports:
            message = f"Invalid value: {port}: the container lists the ports {sorted(ports)}"
            faults.append(Fault(f"{where}.{kind}Probe.httpGet.port", "FieldValueInvalid", message))
    return faults


def immutable(kind: Kind, old: Manifest, new: Manifest) -> None:
    """Refuse a change of what may not change.

    Raises:
        Refused: 422; a version's InferenceService is made once and then only deleted.
    """
    name = old["metadata"]["name"]
    faults = [
        Fault(f"metadata.{field}", "FieldValueInvalid", "Invalid value: field is immutable")
        for field in ("name", "namespace", "uid", "creationTimestamp")
        if new["metadata"].get(field) != old["metadata"].get(field)
    ]
    if kind is SERVICES and new["spec"] != old["spec"]:
        message = "Forbidden: an InferenceService is one immutable version; make another one"
        faults.append(Fault("spec", "FieldValueForbidden", message))
    if faults:
        raise invalid(kind, name, tuple(faults))
