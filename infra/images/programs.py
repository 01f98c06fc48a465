"""Other people's programs: run, their words kept in a log, their failure told in ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.images.place import Cache
from seatrial.errors import InvalidInput, Unavailable, shortened

DEBIAN: Final[Mapping[str, str]] = {
    "buildah": "buildah",
    "skopeo": "skopeo",
    "mmdebstrap": "mmdebstrap",
    "runc": "runc",
}
"""Program → the Debian package that brings it."""
TAIL: Final = 20
"""Lines of a log that a failure shows."""
WITHIN_S: Final = 1800

_AWAY = re.compile(
    r"could not resolve|failed to fetch|temporary failure|connection (refused|reset|timed out)|timed? ?out|"
    r"error sending request|network is unreachable|no route to host|i/o timeout|unexpected EOF|dns error|"
    r"status code: 50\d",
    re.IGNORECASE,
)
"""Programs exit with the same code on everything: their words are all there is."""


@dataclass(frozen=True)
class Programs:
    """Programs that work in one cache."""

    cache: Cache

    def buildah(self, *arguments: str, log: Path) -> str:
        """Run buildah in the cache's own storage."""
        return run(["buildah", *self._storage(), *arguments], log=log)

    def stored(self, name: str) -> str:
        """How skopeo names an image of the cache's storage."""
        return f"containers-storage:[overlay@{self.cache.storage}+{self.cache.running}]{name}"

    def _storage(self) -> tuple[str, ...]:
        return (
            "--storage-driver=overlay",
            f"--root={self.cache.storage}",
            f"--runroot={self.cache.running}",
        )


def required(*names: str) -> None:
    """See that the programs are installed.

    Raises:
        InvalidInput: One is not; names the packages.
    """
    missing = sorted({DEBIAN[name] for name in names if shutil.which(name) is None})
    if missing:
        raise InvalidInput(f"not installed here: apt-get install --no-install-recommends {' '.join(missing)}")


def run(command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program, add what it says to `log`; its standard output.

    Raises:
        Unavailable: It failed, and its words say that something is away; or it took too long.
        InvalidInput: It failed otherwise. Both show the log's tail.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as said:
        said.write(f"$ {' '.join(command)}\n")
        said.flush()
        try:
            done = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                timeout=WITHIN_S,
                env=environment,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{command[0]} did not end within {WITHIN_S} s; see {log}") from error
        except OSError as error:
            raise InvalidInput(f"cannot start {command[0]}: {shortened(error)}") from error
        said.write(done.stdout)
    if done.returncode != 0:
        raise _failed(command[0], done.returncode, log)
    return done.stdout


def _failed(program: str, code: int, log: Path) -> Unavailable | InvalidInput:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    begun = max((number for number, line in enumerate(lines) if line.startswith("$ ")), default=0)
    tail = lines[begun + 1 :][-TAIL:]
    kind = Unavailable if _AWAY.search("\n".join(tail)) else InvalidInput
    return kind("\n  ".join([f"{program} ended with {code}; its log {log} ends with:", *tail]))
