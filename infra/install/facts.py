"""What an overlay must know of a cluster: its images, its addresses and its secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from seatrial import digests
from seatrial.app.sandbox import environment
from seatrial.app.sandbox.places import Home
from seatrial.digests import Digest
from seatrial.errors import InvalidInput, shortened

CHECKOUT: Final = Path(__file__).resolve().parents[2]
TEMPLATES: Final = CHECKOUT / "workflow_templates"
STATE: Final = CHECKOUT / ".seatrial" / "cluster"
SERVING_BASE: Final = "seatrial/triton"
SOURCE_FILE: Final = "source.json"
"""Where a test's git server says how it is reached: the environment of resolve_release, names to values."""
SOURCE: Final = "SEATRIAL_SOURCE"


class Image(BaseModel):
    """An image in a registry."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    repository: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.:/_-]*$")]
    digest: Digest

    @property
    def pinned(self) -> str:
        """repository@sha256:…."""
        return f"{self.repository}@{self.digest}"


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """Where the parts beside the cluster answer, as seen from a pod."""

    node: str
    """The one address at which all of them are."""
    api_port: int
    store: str
    tracking: str
    registry: str
    """host:port."""
    gateway: str
    gateway_metrics: str
    bucket: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All of it."""

    addresses: Addresses
    images: Mapping[str, Image]
    """By the name that the rendered templates use."""
    step_images: str
    """The digest over those that a release is made by."""
    store_credentials: Mapping[str, str] = field(repr=False)
    signing_key: str = field(repr=False)
    source: Mapping[str, str] = field(repr=False)
    """The environment of resolve_release: SEATRIAL_SOURCE, and what a private repository asks for."""


def gathered(addresses: Addresses, *, state: Path = STATE, source: str | None = None) -> Facts:
    """What lies in the cluster's folder; keys and credentials are made on the first call and kept.

    Args:
        addresses: Of the cluster.
        state: Its folder.
        source: A git URL in the place of the one that the folder knows.

    Raises:
        InvalidInput: The images were not pushed, or one that a template names is not among them.
    """
    images = read_images(state / "images.json")
    used = [*sorted(images_of(TEMPLATES)), SERVING_BASE]
    missing = [name for name in used if name not in images]
    if missing:
        raise InvalidInput(f"{state / 'images.json'} lacks {missing}: run `python -m infra.images push`")
    home = Home(state)
    return Facts(
        addresses=addresses,
        images=images,
        step_images=digests.of_json({name: images[name].digest for name in used}),
        store_credentials=environment.store_credentials(home),
        signing_key=environment.signing_key(home),
        source=_source(state / SOURCE_FILE, source),
    )


def read_images(path: Path) -> dict[str, Image]:
    """The images that were pushed: name → repository and digest.

    Raises:
        InvalidInput: The file is not there, or says something else.
    """
    try:
        return TypeAdapter(dict[str, Image]).validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise InvalidInput(f"{path} is not there: run `python -m infra.images push`") from error
    except (OSError, ValidationError) as error:
        raise InvalidInput(f"{path} must map names to repository and digest: {shortened(error)}") from error


def images_of(folder: Path) -> set[str]:
    """Every image that the rendered templates name."""
    return {name for path in folder.glob("*.yaml") for name in _images(yaml.safe_load(path.read_text()))}


def _images(document: object) -> Iterable[str]:
    if isinstance(document, dict):
        container = document.get("container")
        if isinstance(container, dict):
            yield str(container["image"])
        for value in document.values():
            yield from _images(value)
    elif isinstance(document, list):
        for value in document:
            yield from _images(value)


def _source(path: Path, url: str | None) -> dict[str, str]:
    """As the file says; a URL given takes the place of the file's, and is kept in it."""
    kept = {str(name): str(value) for name, value in json.loads(path.read_text()).items()} if path.is_file() else {}
    if url is None or url == kept.get(SOURCE):
        return kept
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({SOURCE: url}, file, indent=1)
    return {SOURCE: url}
