"""The data, byte for byte, from where DATA_URI says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from seatrial.errors import InvalidInput, shortened
from seatrial.ports import Store

OpenBucket = Callable[[str], Store]
"""A bucket's name → what it holds, at the same endpoint as the store."""


def fetch(uri: str, into: Path, open_bucket: OpenBucket) -> Path:
    """Write what `uri` names to the file `into`.

    Args:
        uri: `s3://<bucket>/<key>`, or `file:///<path>`.
        into: The file to write.
        open_bucket: Opens the bucket of an s3 URI.

    Raises:
        InvalidInput: No such URI, nothing there, or an empty file.
    """
    place = urlsplit(uri)
    if place.scheme == "s3" and place.netloc and place.path.strip("/"):
        content = open_bucket(place.netloc).read(place.path.lstrip("/"))
        if content is None:
            raise InvalidInput(
                f"the data must be at {shortened(uri)}; there is no such object: upload it, or give another"
            )
        into.write_bytes(content)
    elif place.scheme == "file" and place.netloc in {"", "localhost"} and place.path.startswith("/"):
        _copy(Path(unquote(place.path)), into)
    else:
        raise InvalidInput(f"DATA_URI is s3://<bucket>/<key> or file:///<path>; got {shortened(repr(uri))}")
    if not into.stat().st_size:
        raise InvalidInput(f"the data at {shortened(uri)} is empty; one row per question is wanted")
    return into


def _copy(path: Path, into: Path) -> None:
    if not path.is_file():
        raise InvalidInput(f"the data must be a file at {shortened(path)}, where this step runs; there is none")
    try:
        shutil.copyfile(path, into)
    except OSError as error:
        raise InvalidInput(f"the data at {shortened(path)} cannot be read: {shortened(error)}") from error
