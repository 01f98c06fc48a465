"""Digests: sha256, always written `sha256:<64 hex digits>`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from seatrial.errors import IntegrityError

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""A digest as a pydantic field."""

_CHUNK = 1 << 20


def of_bytes(data: bytes) -> str:
    """The digest of `data`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def of_file(path: Path) -> str:
    """The digest of a file's content, read in chunks."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            sha.update(chunk)
    return "sha256:" + sha.hexdigest()


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no spaces: equal values give equal bytes. NaN and infinity are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def of_json(value: object) -> str:
    """The digest of a JSON value by content: key order and spacing do not count."""
    return of_bytes(canonical(value))


def of_tree(root: Path) -> str:
    """The digest of a folder: relative paths and contents; times, owners and modes do not count.

    Raises:
        IntegrityError: A symlink lies in it: what it points at could change under the digest.
    """
    entries: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            raise IntegrityError(f"a folder with a digest may hold no symlink; got {path.relative_to(root)}")
        if path.is_file():
            entries[path.relative_to(root).as_posix()] = of_file(path)
    return of_json(entries)


def short(digest: str) -> str:
    """The first 12 hex digits, for people."""
    return digest.removeprefix("sha256:")[:12]
