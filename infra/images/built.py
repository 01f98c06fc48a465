"""A built image: an OCI layout in the cache, under a key that its inputs decide."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from infra.images.catalogue import Image
from infra.images.place import Cache

SUMMARY: Final = "built.json"
TAG: Final = "image"
"""The one name in each layout."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """What is known of a built image."""

    name: str
    key: str
    """`<name>-<12 digits of the digest of its inputs>`"""
    digest: str
    """Of the manifest, here and in every registry."""
    bytes: int
    """Compressed, all layers."""
    unpacked_bytes: int
    user: str
    entrypoint: tuple[str, ...]

    @property
    def stored_name(self) -> str:
        """In the cache's storage, for the images that stand on it."""
        return stored_name(self.name, self.key)

    @property
    def tag(self) -> str:
        """In a registry, for people; what is deployed is named by digest."""
        return self.key.rpartition("-")[2]


def stored_name(name: str, key: str) -> str:
    """How buildah's storage names the image with that key."""
    return f"localhost/{name}:{key.rpartition('-')[2]}"


def find(key: str, cache: Cache) -> Built | None:
    """The image with that key, if it is built."""
    try:
        known = json.loads((cache.layout(key) / SUMMARY).read_text())
    except OSError:
        return None
    return Built(**{**known, "entrypoint": tuple(known["entrypoint"])})


def read(image: Image, key: str, cache: Cache, unpacked_bytes: int) -> Built:
    """Look at a layout that was written just now."""
    (entry,) = json.loads((cache.layout(key) / "index.json").read_text())["manifests"]
    manifest = _blob(cache, entry["digest"])
    settings = _blob(cache, manifest["config"]["digest"])["config"]
    return Built(
        name=image.name,
        key=key,
        digest=entry["digest"],
        bytes=sum(layer["size"] for layer in manifest["layers"]),
        unpacked_bytes=unpacked_bytes,
        user=settings.get("User", ""),
        entrypoint=tuple(settings.get("Entrypoint", ())),
    )


def write(built: Built, cache: Cache) -> None:
    """Say that it is built: from now on `find` finds it."""
    path = cache.layout(built.key) / SUMMARY
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(built), indent=1) + "\n")
    partial.rename(path)


def blobs(key: str, cache: Cache) -> set[str]:
    """The digests of all that a layout refers to; empty where it is no whole one."""
    try:
        (entry,) = json.loads((cache.layout(key) / "index.json").read_text())["manifests"]
        manifest = _blob(cache, entry["digest"])
    except OSError:
        return set()
    return {entry["digest"], manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])}


def _blob(cache: Cache, digest: str) -> dict[str, Any]:
    path: Path = cache.blobs / digest.replace(":", "/")
    return dict(json.loads(path.read_bytes()))
