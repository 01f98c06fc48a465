"""Reading an OCI layout: the root folder of an image, by its digest, every blob checked.

Source: OCI image spec 1.1, image-layout.md and layer.md.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any, Final

from seatrial import digests
from seatrial.errors import IntegrityError, InvalidInput, shortened

_INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"


class ImageMissing(InvalidInput):
    """No image with that digest lies in the layout."""


def unpack(layout: Path, digest: str, roots: Path) -> Path:
    """The root folder of the image `digest` under `roots`; taken apart on the first call, then found.

    Regular files and folders only: links and devices are left out, as Triton itself does not come from the image here.

    Raises:
        ImageMissing: The layout has no such manifest.
        IntegrityError: A blob is missing or is not what its digest says, or a layer cannot be read.
    """
    root = roots / digest.removeprefix("sha256:")
    if root.is_dir():
        return root
    layers = manifest(layout, digest)["layers"]
    new = root.with_name(f".{root.name}.{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for layer in layers:
        _apply(_checked_blob(layout, str(layer["digest"])), new)
    new.rename(root)
    return root


def forget_others(roots: Path, keep: Collection[str]) -> None:
    """Remove every root folder under `roots` but those of the image digests in `keep`."""
    names = {digest.removeprefix("sha256:") for digest in keep}
    for root in roots.iterdir() if roots.is_dir() else ():
        if root.name not in names:
            shutil.rmtree(root, ignore_errors=True)


def manifest(layout: Path, digest: str) -> dict[str, Any]:
    """The image manifest with that digest; of an index, its manifest for linux/amd64."""
    path = _blob(layout, digest)
    if not path.is_file():
        raise ImageMissing(f"no image {digest} in {layout}")
    document = json.loads(_checked_blob(layout, digest).read_bytes())
    if document.get("mediaType") not in _INDEXES and "manifests" not in document:
        if not isinstance(document.get("layers"), list):
            raise IntegrityError(f"{digest} in {layout} is no image manifest")
        return dict(document)
    for entry in document["manifests"]:
        platform = entry.get("platform", {})
        if (platform.get("os", "linux"), platform.get("architecture", "amd64")) == ("linux", "amd64"):
            return manifest(layout, str(entry["digest"]))
    raise ImageMissing(f"the image index {digest} has no manifest for linux/amd64")


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def _checked_blob(layout: Path, digest: str) -> Path:
    path = _blob(layout, digest)
    try:
        found = digests.of_file(path)
    except OSError as error:
        raise IntegrityError(f"the image needs the blob {digest}, which {layout} does not have") from error
    if found != digest:
        raise IntegrityError(f"the blob {digest} in {layout} was altered: its content has {found}")
    return path


def _apply(layer: Path, root: Path) -> None:
    """Lay one layer over `root`."""
    try:
        with tarfile.open(layer, "r:*") as tar:
            for member in tar:
                _apply_member(tar, member, root)
    except tarfile.TarError as error:
        raise IntegrityError(f"the layer {layer.name} cannot be read: {shortened(error)}") from error


def _apply_member(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    path = PurePosixPath(member.name.lstrip("/"))
    if ".." in path.parts:
        raise IntegrityError(f"a layer may not reach out of the image; got {shortened(repr(member.name))}")
    target = root / path
    if path.name == _OPAQUE:
        _remove(target.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
    elif path.name.startswith(_WHITEOUT):
        _remove(target.with_name(path.name.removeprefix(_WHITEOUT)))
    elif member.isdir():
        if target.is_file():
            target.unlink()
        target.mkdir(parents=True, exist_ok=True)
    elif member.isreg():
        content = tar.extractfile(member)
        if content is None:
            raise IntegrityError(f"a layer holds {shortened(repr(member.name))} without its content")
        _remove(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(content, file)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
