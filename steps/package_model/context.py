"""The builder's context: a tar with a Dockerfile and the Triton model repository; equal content, equal bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

from seatrial.bundle import IMAGE_LABEL, Bundle
from seatrial.release import Release

MODEL_LABEL = "dev.seatrial.model"
VERSION_LABEL = "dev.seatrial.version"
TAG_CHARACTERS = 40


def dockerfile(base: str, sealed: Bundle, release: Release) -> str:
    """One base, one COPY, and labels that lead from the image to the bundle."""
    labels = {IMAGE_LABEL: sealed.digest, MODEL_LABEL: sealed.model_name, VERSION_LABEL: str(release.version)}
    lines = [f"FROM {base}", "COPY models/ /models/", *(f'LABEL {name}="{value}"' for name, value in labels.items())]
    return "\n".join(lines) + "\n"


def pack(text: str, repository: Path, target: Path) -> str:
    """Write the context to `target`, tar.gz; give back the image's tag, which its content decides.

    Args:
        text: The Dockerfile.
        repository: Triton model repository, which becomes `models/`.
        target: The file to write.
    """
    files = {"Dockerfile": text.encode()}
    for path in sorted(repository.rglob("*")):
        if path.is_file():
            files[f"models/{path.relative_to(repository).as_posix()}"] = path.read_bytes()
    plain = _tar(files)
    with target.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.write(plain)
    return hashlib.sha256(plain).hexdigest()[:TAG_CHARACTERS]


def _tar(files: dict[str, bytes]) -> bytes:
    """An archive without times, owners or order of its own; readable by everyone, since the server is not root."""
    folders = {parent for name in files for parent in _parents(name)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted([*folders, *files]):
            entry = tarfile.TarInfo(name)
            if name in files:
                entry.size, entry.mode = len(files[name]), 0o644
                archive.addfile(entry, io.BytesIO(files[name]))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
    return buffer.getvalue()


def _parents(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
