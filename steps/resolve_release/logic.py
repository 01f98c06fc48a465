"""What a release is made of, which version it gets, and its training pod's settings."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import ValidationError

from seatrial import digests
from seatrial.errors import IntegrityError, shortened
from seatrial.names import ModelName
from seatrial.ports import Store
from seatrial.release import reservation_key, reservations
from seatrial.spec import Closed, Resources

TRAINING_CONTAINER: Final = "main"
"""What Argo calls the container of a pod that a template describes."""


class Reservation(Closed):
    """Who has a version."""

    model_name: ModelName
    release_id: str


def release_digest(*, source: str, spec: str, data: str, images: str) -> str:
    """Over all that can make a difference; equal to the champion's means that there is nothing to release."""
    return digests.of_json({"source": source, "spec": spec, "data": data, "images": images})


def pod_spec_patch(resources: Resources) -> dict[str, Any]:
    """The strategic merge patch that gives the training pod what the spec asks for; requests equal limits."""
    amounts = {"cpu": resources.cpu, "memory": resources.memory}
    if resources.gpus:
        amounts["nvidia.com/gpu"] = str(resources.gpus)
    container = {"name": TRAINING_CONTAINER, "resources": {"requests": amounts, "limits": amounts}}
    selector = {"nodeSelector": resources.node_selector} if resources.node_selector else {}
    return {"containers": [container], **selector}


def reserve(store: Store, model_name: str, release_id: str, *, above: int) -> int:
    """The version of this release: the one that it reserved before, or the next that nobody has.

    Args:
        store: Where reservations are kept; of many racing ones, one wins a number and the others take the next.
        model_name: The model.
        release_id: Who reserves; a retry has the same.
        above: A version that is taken, whatever the store says: the champion's; 0 for none.
    """
    keys = store.keys(reservations(model_name))
    for key in reversed(keys):
        if _holder(store, key) == release_id:
            return _version(key)
    mine = digests.canonical(Reservation(model_name=model_name, release_id=release_id).model_dump())
    version = max([above, *map(_version, keys)]) + 1
    while not store.write_once(reservation_key(model_name, version), mine):
        version += 1
    return version


def _holder(store: Store, key: str) -> str:
    try:
        return Reservation.model_validate_json(store.read(key) or b"").release_id
    except ValidationError as error:
        raise IntegrityError(f"{key} is no reservation of a version: {shortened(error)}") from error


def _version(key: str) -> int:
    return int(PurePosixPath(key).stem)
