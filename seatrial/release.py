"""The release: one run for one model, and how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from seatrial.digests import Digest
from seatrial.errors import IntegrityError, shortened
from seatrial.names import ModelName
from seatrial.ports import Store
from seatrial.spec import Closed

Outcome = Literal["promoted", "unchanged", "refused", "rolled_back", "superseded", "failed"]

EXIT_CODES: Final[dict[Outcome, int]] = {
    "promoted": 0,
    "unchanged": 0,
    "refused": 10,
    "rolled_back": 11,
    "superseded": 12,
    "failed": 1,
}
"""What the command and settle_release exit with."""


class Served(Closed):
    """A version that serves or served: enough to compare with and to find its bundle."""

    version: int = Field(ge=1)
    bundle: Digest = Field(description="digest of its bundle")
    image: str = Field(description="repository@sha256:…")
    release_digest: Digest = Field(description="digest of source, spec, data and step images that made it")


class Release(Closed):
    """What resolve_release found out and every later step reads: `release.json`."""

    release_id: str = Field(min_length=1, max_length=253, description="the Workflow's uid; a retry has the same")
    model_name: ModelName
    version: int = Field(ge=1, description="reserved for this release id, never reused")
    revision: str = Field(description="commit of the source, with +worktree when the folder on disk was taken")
    reason: str = Field(max_length=2000, description="why the release was asked for, free text")
    data_uri: str
    source_digest: Digest
    spec_digest: Digest
    data_digest: Digest
    images_digest: Digest = Field(description="of the step images, so that a new step makes a new release")
    release_digest: Digest = Field(description="over the four above; equal to the champion's means unchanged")
    champion: Served | None = Field(description="None: the first release of this model")


def reservations(model_name: str) -> str:
    """Prefix under which the store keeps which release has which version."""
    return f"models/{model_name}/versions/"


def reservation_key(model_name: str, version: int) -> str:
    """Where the store keeps who reserved a version; written once."""
    return f"{reservations(model_name)}{version:08d}.json"


def key(model_name: str, release_id: str) -> str:
    """Where the store keeps a release's `release.json`."""
    return f"models/{model_name}/releases/{release_id}.json"


def served_key(model_name: str, version: int) -> str:
    """Where the store keeps a version's `Served`; written before the route knows the version."""
    return f"models/{model_name}/served/{version:08d}.json"


def outcome_key(model_name: str, release_id: str) -> str:
    """Where the store keeps how a release ended."""
    return f"models/{model_name}/outcomes/{release_id}.json"


def looks(model_name: str, data_digest: str) -> str:
    """Prefix under which the store counts the releases that looked at the held-out rows of one data set."""
    return f"models/{model_name}/holdouts/{data_digest.replace(':', '-')}/"


def read(path: Path) -> Release:
    """The release in a `release.json` that resolve_release wrote."""
    return Release.model_validate_json(path.read_bytes())


def served(store: Store, model_name: str, version: int) -> Served | None:
    """What the store knows of a version that serves or served; None: nothing.

    Raises:
        IntegrityError: What it holds cannot be read, or is of another version.
    """
    place = served_key(model_name, version)
    raw = store.read(place)
    if raw is None:
        return None
    try:
        found = Served.model_validate_json(raw)
    except ValidationError as error:
        raise IntegrityError(f"{place} must say what v{version} of {model_name} is: {shortened(error)}") from error
    if found.version != version:
        raise IntegrityError(f"{place} must say what v{version} of {model_name} is; it is about v{found.version}")
    return found


def serving(store: Store, model_name: str, version: int) -> Served:
    """What a version that the route names is made of.

    Raises:
        IntegrityError: The store does not know it.
    """
    found = served(store, model_name, version)
    if found is None:
        raise IntegrityError(
            f"v{version} serves {model_name}, and {served_key(model_name, version)} must say what it is"
        )
    return found
