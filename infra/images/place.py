"""Where things lie: outside the clone, so that a second clone finds what the first has built."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from seatrial import digests

ROOT: Final = Path(__file__).resolve().parents[2]
"""The repository."""


@dataclass(frozen=True)
class Cache:
    """The folder of all that is built."""

    folder: Path

    @property
    def storage(self) -> Path:
        """Buildah's layers."""
        return self.folder / "storage"

    @property
    def running(self) -> Path:
        """Buildah's mounts: on /run, since none outlives a boot."""
        return Path("/run/seatrial-images") / digests.short(digests.of_bytes(str(self.folder).encode()))

    @property
    def blobs(self) -> Path:
        """Compressed layers, manifests and configs of all images, by digest."""
        return self.folder / "blobs"

    def layout(self, key: str) -> Path:
        """One built image as an OCI layout whose blobs lie in `blobs`."""
        return self.folder / "layouts" / key

    def root(self, key: str) -> Path:
        """A Debian root, packed."""
        return self.folder / "roots" / f"{key}.tar"

    def log(self, name: str) -> Path:
        """What the programs said while `name` was built last."""
        return self.folder / "logs" / f"{name.replace('/', '-')}.log"

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        """One process at a time builds `name`; a dead one holds nothing."""
        with self._lock(name) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def shared(self, name: str) -> Iterator[None]:
        """At work with `name`, side by side with others."""
        with self._lock(name) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Whether nobody else is at work with `name`; while that holds nobody begins."""
        with self._lock(name) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _lock(self, name: str) -> IO[str]:
        path = self.folder / "locks" / name.replace("/", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w")


def cache() -> Cache:
    """The cache at $SEATRIAL_CACHE, or ~/.cache/seatrial."""
    return Cache(Path(os.environ.get("SEATRIAL_CACHE") or Path.home() / ".cache" / "seatrial").absolute() / "images")
