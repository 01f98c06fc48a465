"""The bundle: exactly what is served, and the manifest that names each file's sha256.

    config.pbtxt             Triton's model configuration
    model/model.onnx …       what lies in the version directory
    manifest.json            every other file: path → sha256

The digest covers content only, not the version: the same model is the same bundle in every cluster. In an image the
files lie as Triton wants them, `<model name>/config.pbtxt` and `<model name>/<version>/model.onnx`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from seatrial import digests
from seatrial.digests import Digest
from seatrial.errors import IntegrityError, shortened
from seatrial.names import ModelName
from seatrial.spec import Closed

MANIFEST: Final = "manifest.json"
CONFIG: Final = "config.pbtxt"
MODEL_FOLDER: Final = "model"
MODEL_FILE: Final = "model/model.onnx"
IMAGE_LABEL: Final = "dev.seatrial.bundle"
"""Label of a serving image that holds the digest of the bundle in it."""


class Bundle(Closed):
    """The manifest of a bundle."""

    model_name: ModelName
    files: dict[str, Digest] = Field(min_length=2, description="path in the bundle → digest of the content")

    @property
    def digest(self) -> str:
        """What the bundle is known by; equal content, equal digest."""
        return digests.of_json(self.model_dump(mode="json"))

    @property
    def model_digest(self) -> str:
        """Of `model.onnx` alone; evaluate_model judged this."""
        return self.files[MODEL_FILE]

    @property
    def prefix(self) -> str:
        """Where the store keeps it, written once."""
        return prefix(self.digest)


def prefix(digest: str) -> str:
    """Where the store keeps the bundle with this digest."""
    return f"bundles/{digest.replace(':', '-')}"


def papers_prefix(digest: str) -> str:
    """Where the store keeps what is known of the bundle: verdicts, model card, SBOM, reports."""
    return f"papers/{digest.replace(':', '-')}"


def seal(root: Path, model_name: str) -> Bundle:
    """Write the manifest over the files under `root`, which must hold a config and a model."""
    bundle = Bundle(model_name=model_name, files=_contents(root))
    for path in (CONFIG, MODEL_FILE):
        if path not in bundle.files:
            raise IntegrityError(f"a bundle needs {path}; got {sorted(bundle.files)}")
    (root / MANIFEST).write_bytes(digests.canonical(bundle.model_dump(mode="json")))
    return bundle


def read(root: Path) -> Bundle:
    """The bundle under `root`, checked file by file.

    Raises:
        IntegrityError: A file is missing, altered or too many, or the manifest cannot be read.
    """
    try:
        bundle = Bundle.model_validate_json((root / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        raise IntegrityError(f"the bundle has no readable {MANIFEST}: {shortened(error)}") from error
    found = _contents(root)
    wrong = sorted(p for p in bundle.files.keys() | found.keys() if bundle.files.get(p) != found.get(p))
    if wrong:
        raise IntegrityError(f"the bundle differs from its manifest in {wrong}: altered, missing or not listed")
    return bundle


def lay_out(root: Path, version: int, repository: Path) -> None:
    """Copy the bundle under `root` to a Triton model repository, as the given version."""
    bundle = read(root)
    model = repository / bundle.model_name
    shutil.copytree(root / MODEL_FOLDER, model / str(version))
    shutil.copyfile(root / CONFIG, model / CONFIG)


def _contents(root: Path) -> dict[str, str]:
    files: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise IntegrityError(f"a bundle may hold files and folders only, no symlink and no pipe; got {relative}")
        if path.is_file() and relative != MANIFEST:
            files[relative] = digests.of_file(path)
    return files
