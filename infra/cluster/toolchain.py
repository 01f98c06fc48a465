"""Go: whether it is new enough, and one command of it with its output in a log."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.cluster.versions import Module
from seatrial.errors import InvalidInput, Unavailable

_BUILD_S: Final = 3600
_TAIL_LINES: Final = 20
LINKED_SMALL: Final = "-s -w"


def require(go: str) -> None:
    """Go is there and at least `go`, as "1.26".

    Raises:
        InvalidInput: It is missing or older.
    """
    try:
        said = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise InvalidInput(f"go {go} or newer is needed on PATH to build the cluster's programs; found none") from error
    if not new_enough(said, go):
        raise InvalidInput(f"go {go} or newer is needed on PATH to build the cluster's programs; found {said}")


def new_enough(said: str, wanted: str) -> bool:
    """Whether a version as `go env GOVERSION` says it ("go1.26.8") is at least `wanted` ("1.26")."""
    found = re.match(r"go(\d+)\.(\d+)", said)
    least = tuple(int(number) for number in wanted.split("."))
    return found is not None and (int(found[1]), int(found[2])) >= least


@dataclass(frozen=True)
class Go:
    """Runs go commands; what they say goes to `log`."""

    log: Path

    def run(self, *arguments: str, cwd: Path, **variables: str) -> None:
        """Run `go` with `arguments`.

        Raises:
            Unavailable: It failed; the message holds the end of the log.
        """
        run(["go", *arguments], log=self.log, cwd=cwd, variables={**_SURROUNDINGS, **variables})

    def module(self, module: Module, cwd: Path) -> Path:
        """The module's folder in Go's own cache, downloaded when it is not there; checked by Go's checksum database.

        Raises:
            Unavailable: It cannot be had.
        """
        done = subprocess.run(
            ["go", "mod", "download", "-json", f"{module.path}@{module.version}"],
            cwd=cwd,
            env={**os.environ, **_SURROUNDINGS},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"{module.path}@{module.version} cannot be downloaded: {done.stderr or done.stdout}")
        return Path(json.loads(done.stdout)["Dir"])


_SURROUNDINGS: Final[Mapping[str, str]] = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-buildvcs=false -trimpath",
    "GOWORK": "off",
    "GOTOOLCHAIN": "local",
}


def run(command: list[str], *, log: Path, cwd: Path, variables: Mapping[str, str]) -> None:
    """Run a command whose output goes to `log`.

    Raises:
        Unavailable: It failed; the message holds the end of the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, **variables},
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=_BUILD_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{command[0]} did not end well: {error}; its log is {log}") from error
    if done.returncode != 0:
        raise Unavailable(f"`{' '.join(command[:4])} …` failed; the end of {log}:\n{tail(log)}")


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log, or a word that there are none."""
    if not log.exists():
        return "(nothing was written)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
