"""Images as an OCI layout on disk: written so that a reader sees a whole image or none, and equal content is one blob.

Source: OCI image-spec 1.1 (image-layout.md, manifest.md, config.md, layer.md).
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from seatrial import digests
from seatrial.errors import IntegrityError, InvalidInput, shortened

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
REF_NAME: Final = "org.opencontainers.image.ref.name"
EPOCH: Final = "1970-01-01T00:00:00Z"
"""Every image's time of making: the same content is the same image whenever it is built."""


@dataclass(frozen=True)
class Layer:
    """A layer in a layout."""

    digest: str
    """Of the compressed blob."""
    size: int
    diff_id: str
    """Of the tar itself: equal wherever and however it was compressed."""
    media_type: str = LAYER
    """A base's layer may be compressed otherwise than ours."""

    def descriptor(self) -> dict[str, Any]:
        """As a manifest names it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


@dataclass(frozen=True)
class Image:
    """An image: what its config says and its layers, bottom first."""

    config: Mapping[str, Any]
    layers: tuple[Layer, ...]


EMPTY: Final = Image(
    config={"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}},
    layers=(),
)
"""`FROM scratch`."""


@dataclass(frozen=True)
class Layout:
    """An OCI layout in a folder."""

    root: Path

    def read(self, digest: str) -> Image:
        """The image whose manifest has `digest`, checked.

        Raises:
            InvalidInput: There is none, or it is not an image manifest.
            IntegrityError: A blob is missing or altered.
        """
        manifest = self.manifest(digest)
        config = self._json(manifest["config"]["digest"])
        ids = config["rootfs"]["diff_ids"]
        layers = [
            Layer(d["digest"], d["size"], i, d["mediaType"]) for d, i in zip(manifest["layers"], ids, strict=True)
        ]
        return Image(config=config, layers=tuple(layers))

    def manifest(self, digest: str) -> dict[str, Any]:
        """The manifest itself; the image's other blobs need not lie here.

        Raises:
            InvalidInput: There is none, or it is not an image manifest.
            IntegrityError: It was altered.
        """
        if not self._blob(digest).is_file():
            raise InvalidInput(f"no image {digest} lies in {self.root}")
        manifest = self._json(digest)
        if manifest.get("mediaType") != MANIFEST:
            raise InvalidInput(f"{digest} must be an OCI image manifest; it is {shortened(manifest.get('mediaType'))}")
        return manifest

    def write(self, image: Image) -> str:
        """Write config and manifest, whose layers lie here already; the manifest's digest."""
        rootfs = {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]}
        config = self.put(digests.canonical({**image.config, "created": EPOCH, "rootfs": rootfs}))
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, **config},
            "layers": [layer.descriptor() for layer in image.layers],
        }
        return str(self.put(digests.canonical(manifest))["digest"])

    def holds(self, digest: str) -> bool:
        """Whether that blob lies here."""
        return self._blob(digest).is_file()

    def tag(self, digest: str, name: str) -> None:
        """Let `name` mean the image `digest` from now on."""
        entry = {
            "mediaType": MANIFEST,
            "digest": digest,
            "size": self._blob(digest).stat().st_size,
            "annotations": {REF_NAME: name},
        }
        with self._locked():
            entries = [known for known in self.index() if known.get("annotations", {}).get(REF_NAME) != name]
            index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*entries, entry]}
            _replace(self.root / "index.json", digests.canonical(index))
            _replace(self.root / "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')

    def index(self) -> list[dict[str, Any]]:
        """The named images."""
        path = self.root / "index.json"
        return list(json.loads(path.read_bytes())["manifests"]) if path.exists() else []

    def layer(self, files: Mapping[str, Path]) -> Layer:
        """Write a layer that holds `files`: path in the image, without a leading slash → file here.

        Times and owners are zero and the order is the name's, so equal files give an equal layer.
        """
        with self._new_blob() as blob:
            plain, packed = hashlib.sha256(), hashlib.sha256()
            with gzip.GzipFile(filename="", mode="wb", fileobj=_Hashed(blob, packed), mtime=0) as zipped:
                _tar(files, _Hashed(zipped, plain))
            blob.flush()
            digest = f"sha256:{packed.hexdigest()}"
            size = os.fstat(blob.fileno()).st_size
            Path(blob.name).rename(self._blob(digest))
        return Layer(digest=digest, size=size, diff_id=f"sha256:{plain.hexdigest()}")

    def _blob(self, digest: str) -> Path:
        return self.root / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def _json(self, digest: str) -> dict[str, Any]:
        try:
            data = self._blob(digest).read_bytes()
        except OSError as error:
            raise IntegrityError(f"the blob {digest} is missing from {self.root}") from error
        if digests.of_bytes(data) != digest:
            raise IntegrityError(f"the blob {digest} in {self.root} was altered: it is {digests.of_bytes(data)}")
        return dict(json.loads(data))

    def put(self, data: bytes) -> dict[str, Any]:
        """Write a blob; its digest and size, as a descriptor has them."""
        digest = digests.of_bytes(data)
        with self._new_blob() as blob:
            blob.write(data)
            blob.flush()
            Path(blob.name).rename(self._blob(digest))
        return {"digest": digest, "size": len(data)}

    @contextmanager
    def _new_blob(self) -> Iterator[Any]:
        """A file under a temporary name beside the blobs; removed unless it was renamed."""
        folder = self.root / "blobs" / "sha256"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".new-", delete=False) as blob:
            try:
                Path(blob.name).chmod(0o644)
                yield blob
            finally:
                Path(blob.name).unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer of the index at a time, between processes; a dead one holds nothing."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class _Hashed(io.RawIOBase):
    """Writes through and hashes what went by."""

    def __init__(self, inner: IO[bytes] | gzip.GzipFile, sha: hashlib._Hash) -> None:
        self._inner, self._sha = inner, sha

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 - whatever has a buffer
        self._sha.update(data)
        self._inner.write(data)
        return len(data)


def _tar(files: Mapping[str, Path], target: io.RawIOBase) -> None:
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted({*folders, *files}):
            entry = tarfile.TarInfo(name)
            if name not in files:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
                continue
            status = files[name].stat()
            entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
            with files[name].open("rb") as content:
                archive.addfile(entry, content)


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(data)
    partial.rename(path)
