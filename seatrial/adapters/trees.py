"""Folders in a store: written once, manifest last, and checked file by file on the way back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from seatrial import bundle, digests
from seatrial.bundle import Bundle
from seatrial.errors import IntegrityError, shortened
from seatrial.ports import Store


def put_tree(store: Store, prefix: str, root: Path, *, last: str) -> int:
    """Write every file under `root` once to `prefix/…`, the file `last` when all others are there; the bytes written.

    Equal content already there is fine: a step that crashed half-way is run again.

    Raises:
        IntegrityError: A key is taken by other content.
    """
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    ordered = [name for name in files if name != last] + [last]
    return sum(put_once(store, f"{prefix}/{name}", (root / name).read_bytes()) for name in ordered)


def put_once(store: Store, key: str, data: bytes) -> int:
    """Write one object once; the bytes written, 0 when the same content is there already.

    Raises:
        IntegrityError: The key is taken by other content.
    """
    if store.write_once(key, data):
        return len(data)
    found = store.read(key)
    if found != data:
        came = "nothing" if found is None else digests.of_bytes(found)
        raise IntegrityError(f"{key} is written once and holds {came}; {digests.of_bytes(data)} was to be written")
    return 0


def fetch_tree(store: Store, prefix: str, files: Mapping[str, str], root: Path) -> None:
    """Read files into `root`, each checked against its digest before it is written.

    Args:
        store: Where they are.
        prefix: Of their keys, without a trailing slash.
        files: Path below the prefix → digest.
        root: The folder to write to.

    Raises:
        IntegrityError: A file is missing or altered, or its path leads out of the folder.
    """
    for name, digest in files.items():
        target = root / name
        if not target.resolve().is_relative_to(root.resolve()) or name.startswith("/"):
            raise IntegrityError(f"a manifest may name files in its own folder only; got {shortened(name)!r}")
        data = store.read(f"{prefix}/{name}")
        if data is None or digests.of_bytes(data) != digest:
            came = "nothing" if data is None else digests.of_bytes(data)
            raise IntegrityError(f"{prefix}/{name} must be {digest}; the store holds {came}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def put_bundle(store: Store, root: Path) -> Bundle:
    """Write the sealed bundle under `root` to its place; its manifest last, so that a reader sees all of it or none."""
    sealed = bundle.read(root)
    put_tree(store, sealed.prefix, root, last=bundle.MANIFEST)
    return sealed


def fetch_bundle(store: Store, digest: str, root: Path) -> Bundle:
    """Read the bundle with this digest into `root`, checked file by file.

    Raises:
        IntegrityError: It is not there, not whole, or not the one with this digest.
    """
    raw = store.read(f"{bundle.prefix(digest)}/{bundle.MANIFEST}")
    if raw is None:
        raise IntegrityError(f"the store holds no whole bundle {digest}")
    try:
        found = Bundle.model_validate_json(raw)
    except ValidationError as error:
        raise IntegrityError(f"the manifest of bundle {digest} cannot be read: {shortened(error)}") from error
    if found.digest != digest:
        raise IntegrityError(f"the store holds {found.digest} in the place of bundle {digest}")
    fetch_tree(store, bundle.prefix(digest), found.files, root)
    (root / bundle.MANIFEST).write_bytes(raw)
    return bundle.read(root)
