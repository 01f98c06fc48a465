"""Keeps the cache from filling the disk: beyond a bound, what this tree does not need goes.

Buildah cannot tell which of its unnamed layers a next build would use, so they all go: that build installs once more.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from infra.images import built
from infra.images.built import Built
from infra.images.place import Cache
from infra.images.programs import Programs

MOST_BYTES: Final = 20_000_000_000
"""Of layers, unpacked. One tree's images take about 6 GB, the layers below them included."""


def prune(images: Mapping[str, Built], cache: Cache, *, most_bytes: int = MOST_BYTES) -> bool:
    """Remove what is no part of `images`, where there is more than `most_bytes` and nobody works; whether it did."""
    with cache.alone("storage") as alone:
        if not alone or layer_bytes(cache) <= most_bytes:
            return False
        _prune_storage({made.stored_name for made in images.values()}, cache)
        _prune_layouts({made.key for made in images.values()}, cache)
        return True


def layer_bytes(cache: Cache) -> int:
    """What buildah's layers take, as it has written down itself. Source: containers/storage, layers.go."""
    try:
        layers = json.loads((cache.storage / "overlay-layers" / "layers.json").read_text())
    except FileNotFoundError:
        return 0
    return sum(layer.get("diff-size", 0) for layer in layers)


def _prune_storage(kept: set[str], cache: Cache) -> None:
    programs, log = Programs(cache), cache.log("pruning")
    known = programs.buildah("images", "--format", "{{.Name}}:{{.Tag}}", log=log).split()
    gone = [name for name in known if not name.startswith("<none>") and name not in kept]
    if gone:
        programs.buildah("rmi", "--force", *gone, log=log)
    programs.buildah("rmi", "--prune", log=log)


def _prune_layouts(kept: set[str], cache: Cache) -> None:
    """Layouts, and the blobs that no layout refers to any more."""
    held: set[str] = set()
    for layout in cache.layout("any").parent.iterdir():
        if layout.name in kept:
            held |= built.blobs(layout.name, cache)
        else:
            shutil.rmtree(layout)
    for path in _files(cache.blobs / "sha256"):
        if f"sha256:{path.name}" not in held:
            path.unlink()


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
