"""The cache of programs: each part appears whole, once, under its version, and is found from then on."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.cluster import recipes, toolchain
from infra.cluster.recipes import RECIPES, SOURCES, Recipe, Workshop
from infra.cluster.toolchain import Go
from infra.cluster.versions import Module, Versions
from seatrial.app.sandbox.triton import exclusive
from seatrial.errors import InvalidInput

Say = Callable[[str], None]

_MADE: Final = "1"
"""Raised when a recipe changes what it makes from the same sources."""


@dataclass(frozen=True)
class Programs:
    """Where everything that was built lies."""

    cache: Path
    folders: Mapping[str, Path]
    """Part → its folder."""

    def program(self, part: str, name: str) -> str:
        """The path of a program."""
        return str(self.folders[part] / name)

    def for_people(self) -> Iterable[Path]:
        """Every program that may lie on PATH; the network plugins have names that others have too."""
        for folder in (folder for part, folder in self.folders.items() if part not in {"cni", "pause"}):
            for path in (*sorted(folder.iterdir()), *sorted(folder.glob("usr/bin/*"))):
                if path.is_file() and path.stat().st_mode & 0o100:
                    yield path


def build(cache: Path, versions: Versions, say: Say) -> Programs:
    """Find every part in `cache`, or make it; safe to run at once from several processes.

    Raises:
        InvalidInput: Go is missing or too old, and something must be built.
        Unavailable: A part cannot be downloaded or built; the message holds the end of its log.
    """
    cache.mkdir(parents=True, exist_ok=True)
    todo = [*RECIPES, *(_unpacked(package) for package in versions.unpacked)]
    with exclusive(cache / "build.lock"):
        missing = [recipe for recipe in todo if not _folder(cache, recipe, versions).is_dir()]
        if any(recipe in RECIPES for recipe in missing):
            toolchain.require(versions.go)
        for number, recipe in enumerate(missing, 1):
            say(f"building {_folder(cache, recipe, versions).name}, {number} of {len(missing)}")
            _make(recipe, cache, versions, say)
    return found(cache, versions)


def found(cache: Path, versions: Versions) -> Programs:
    """Every part, as it lies in `cache`.

    Raises:
        InvalidInput: One is not there.
    """
    todo = [*RECIPES, *(_unpacked(package) for package in versions.unpacked)]
    folders = {recipe.name: _folder(cache, recipe, versions) for recipe in todo}
    missing = [name for name, folder in folders.items() if not folder.is_dir()]
    if missing:
        raise InvalidInput(f"not built yet: {', '.join(missing)}; run `python -m infra.cluster build`")
    return Programs(cache, folders)


def _unpacked(package: str) -> Recipe:
    return Recipe(package, (), lambda shop: recipes.unpack(shop, package))


def _make(recipe: Recipe, cache: Path, versions: Versions, say: Say) -> None:
    started = time.monotonic()
    folder = _folder(cache, recipe, versions)
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".{recipe.name}-") as scratch:
        shop = Workshop(
            out=Path(scratch) / "out",
            scratch=Path(scratch) / "scratch",
            go=Go(cache / "logs" / f"{recipe.name}.log"),
            modules=versions.modules,
        )
        shop.out.mkdir()
        shop.scratch.mkdir()
        recipe.make(shop)
        shop.out.rename(folder)
        shutil.rmtree(shop.scratch)
    say(f"built {folder.name:<44}{time.monotonic() - started:6.1f} s")


def _folder(cache: Path, recipe: Recipe, versions: Versions) -> Path:
    return cache / folder_name(recipe, versions.modules)


def folder_name(recipe: Recipe, modules: Mapping[str, Module]) -> str:
    """The part's name, its versions, and eight digits of what is ours in it."""
    first, *others = recipe.modules or ("",)
    words = [recipe.name, *([modules[first].number] if first else [])]
    for other in others:
        words += [other, modules[other].number]
    return "-".join([*words, _digest_of_ours(SOURCES / recipe.name)[:8]])


def _digest_of_ours(folder: Path) -> str:
    sha = hashlib.sha256(_MADE.encode())
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        sha.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return sha.hexdigest()
