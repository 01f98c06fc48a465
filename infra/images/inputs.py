"""What an image is made of: all that decides its content, and the key that follows from it."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.images import context, debian
from infra.images.built import Built
from infra.images.catalogue import Image
from infra.images.place import ROOT, Cache
from infra.images.programs import run
from seatrial import digests

RECIPE: Final = 1
"""Raise it when `build` makes another image of the same inputs."""
UV_LOCK: Final = ROOT / "locks" / "uv.txt"
# What a context holds that is not in the repository.
ROOT_TAR: Final = "root.tar"
UV: Final = "uv"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything that goes into one image."""

    image: Image
    dockerfile: str
    files: Mapping[str, Path]
    """Path in the context → file."""
    bases: Mapping[str, Built]
    """Build argument → image."""

    @property
    def key(self) -> str:
        """`<name>-<12 digits>`; equal inputs, equal key."""
        decided = {
            "dockerfile": self.dockerfile,
            "context": context.digest(self.files),
            "bases": {argument: base.digest for argument, base in self.bases.items()},
            "recipe": RECIPE,
        }
        return f"{self.image.short}-{digests.short(digests.of_json(decided))}"


def of(image: Image, done: Mapping[str, Built], cache: Cache) -> Inputs | None:
    """The inputs of an image; None while something of it is not there yet.

    Raises:
        InvalidInput: Its Dockerfile copies what the repository does not have.
    """
    text = image.path.read_text(encoding="utf-8")
    extra = _extra(image, text, cache)
    if not set(image.bases.values()) <= set(done) or not all(path.exists() for path in extra.values()):
        return None
    bases = {argument: done[name] for argument, name in image.bases.items()}
    return Inputs(image=image, dockerfile=text, files=context.files(text, ROOT, extra), bases=bases)


def fetch(image: Image, cache: Cache) -> None:
    """Make what of an image's context is not in the repository: a Debian root, uv.

    Raises:
        Unavailable: A registry of packages cannot be reached.
    """
    if image.root:
        debian.make(image.root, cache)
    if UV in context.sources(image.path.read_text(encoding="utf-8")):
        _fetch_uv(cache)


def _extra(image: Image, text: str, cache: Cache) -> dict[str, Path]:
    extra = {ROOT_TAR: debian.path(image.root, cache)} if image.root else {}
    return {**extra, UV: _uv(cache)} if UV in context.sources(text) else extra


def _uv(cache: Cache) -> Path:
    return cache.folder / f"uv-{digests.short(digests.of_file(UV_LOCK))}"


def _fetch_uv(cache: Cache) -> None:
    """The executable of the locked wheel."""
    with cache.exclusive("wheel"):
        if _uv(cache).exists():
            return
        with tempfile.TemporaryDirectory(dir=cache.folder) as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            run([*pip, "--require-hashes", "--dest", folder, "-r", str(UV_LOCK)], log=cache.log("wheel"))
            (wheel,) = Path(folder).glob("uv-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (name,) = [name for name in archive.namelist() if name.endswith("/scripts/uv")]
                partial = Path(archive.extract(name, folder))
            partial.chmod(0o755)
            partial.rename(_uv(cache))
