"""Debian packages that the cluster needs: which are missing, and the line that installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from seatrial.errors import InvalidInput, Unavailable, shortened

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INSTALL_S: Final = 900


def which(program: str) -> str | None:
    """Where `program` lies, among the system's own too."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def missing(packages: Mapping[str, str], found: Callable[[str], object] = which) -> list[str]:
    """The packages, sorted, whose program is not there."""
    return sorted({package for program, package in packages.items() if not found(program)})


def install_line(wanted: list[str]) -> str:
    """What a person types."""
    return f"apt-get update && apt-get install --yes --no-install-recommends {' '.join(wanted)}"


def ensure(packages: Mapping[str, str], *, install: bool, say: Callable[[str], None]) -> None:
    """Every program of `packages` is there when this returns.

    Args:
        packages: Program → package.
        install: Install what is missing; needs root.
        say: Hears what is installed.

    Raises:
        InvalidInput: Some are missing, and they are not to be installed; the message holds the line that does it.
        Unavailable: apt-get failed.
    """
    wanted = missing(packages)
    if not wanted:
        return
    if not install or os.geteuid() != 0:
        raise InvalidInput(f"missing Debian packages: {', '.join(wanted)}; run as root: {install_line(wanted)}")
    say(f"installing {', '.join(wanted)}")
    _apt("update", "-qq")
    _apt("install", "-qq", "--yes", "--no-install-recommends", *wanted)


def _apt(*arguments: str) -> None:
    surroundings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        ["apt-get", *arguments], env=surroundings, capture_output=True, text=True, timeout=_INSTALL_S, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"apt-get {arguments[0]} failed: {shortened(done.stderr or done.stdout)}")
