"""What the store holds of a bundle, as far as a deployment needs it."""

from __future__ import annotations

from pydantic import ValidationError

from seatrial import bundle, release
from seatrial.bundle import Bundle
from seatrial.errors import IntegrityError, shortened
from seatrial.ports import Store
from seatrial.release import Release, Served
from seatrial.spec import Spec
from seatrial.triton import requests
from seatrial.triton.requests import Example
from seatrial.verdict import BEFORE_DEPLOY, Gate


def spec_of(store: Store, digest: str) -> Spec:
    """The spec that the bundle was made by.

    Raises:
        IntegrityError: It is not there or no spec.
    """
    raw = _paper(store, digest, "spec.json")
    try:
        return Spec.model_validate_json(raw)
    except ValidationError as error:
        raise IntegrityError(f"spec.json of bundle {digest} is no spec: {shortened(error)}") from error


def model_digest(store: Store, digest: str) -> str:
    """The digest of the model in the bundle, by its manifest.

    Raises:
        IntegrityError: The manifest is not there, or not the one with this digest.
    """
    raw = store.read(f"{bundle.prefix(digest)}/{bundle.MANIFEST}")
    try:
        found = Bundle.model_validate_json(raw or b"")
    except ValidationError as error:
        raise IntegrityError(f"the store holds no readable bundle {digest}: {shortened(error)}") from error
    if found.digest != digest:
        raise IntegrityError(f"the store holds {found.digest} in the place of bundle {digest}")
    return found.model_digest


def envelopes(store: Store, digest: str) -> dict[Gate, bytes | None]:
    """Gate → the envelope of its verdict; None where there is none."""
    return {gate: store.read(f"{bundle.papers_prefix(digest)}/{gate}.dsse.json") for gate in BEFORE_DEPLOY}


def golden(store: Store, digest: str) -> list[Example]:
    """Requests and their right answers, at least one.

    Raises:
        IntegrityError: They are not there, or cannot be read.
    """
    try:
        found = requests.parse(_paper(store, digest, "golden.jsonl"))
    except (ValueError, TypeError) as error:
        raise IntegrityError(f"golden.jsonl of bundle {digest} cannot be read: {shortened(error)}") from error
    if not found:
        raise IntegrityError(f"golden.jsonl of bundle {digest} holds no request: nothing would be tried")
    return found


def release_of(store: Store, model_name: str, release_id: str) -> Release | None:
    """The release as resolve_release found it; None: the store knows no such release.

    Raises:
        IntegrityError: It cannot be read.
    """
    raw = store.read(release.key(model_name, release_id))
    if raw is None:
        return None
    try:
        return Release.model_validate_json(raw)
    except ValidationError as error:
        raise IntegrityError(f"the store's record of release {release_id} is none: {shortened(error)}") from error


def served(store: Store, model_name: str, version: int) -> Served:
    """What a version that serves is made of.

    Raises:
        IntegrityError: The store does not know it.
    """
    key = release.served_key(model_name, version)
    try:
        return Served.model_validate_json(store.read(key) or b"")
    except ValidationError as error:
        raise IntegrityError(
            f"v{version} serves {model_name}, and {key} must say what it is: {shortened(error)}"
        ) from error


def _paper(store: Store, digest: str, name: str) -> bytes:
    raw = store.read(f"{bundle.papers_prefix(digest)}/{name}")
    if raw is None:
        raise IntegrityError(f"the papers of bundle {digest} lack {name}: it must not be deployed")
    return raw
