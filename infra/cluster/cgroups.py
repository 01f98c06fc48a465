"""The cgroup under which kubelet puts the pods: made before, removed after, in whichever version this host has."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Final

from seatrial.errors import StepError

ROOT: Final = Path("/sys/fs/cgroup")
_EMPTY_WITHIN_S: Final = 5.0
_WEIGHT: Final = 10
"""Of all pods together, in processes. A node's programs are in a group beside the pods'; here each stands beside it on
its own, and without a weight all pods would get as much of a busy machine as one of them."""


def hierarchies(root: Path = ROOT) -> list[Path]:
    """The one tree of version 2, or every tree of version 1."""
    if (root / "cgroup.controllers").exists():
        return [root]
    return sorted(folder for folder in root.iterdir() if folder.is_dir() and not folder.is_symlink())


def make(cgroup: str) -> None:
    """The cgroup, as "/name", exists in every tree and may be divided further."""
    for tree in hierarchies():
        folder = tree / cgroup.lstrip("/")
        folder.mkdir(exist_ok=True)
        if tree.name == "cpuset":
            for name in ("cpuset.cpus", "cpuset.mems"):  # version 1 starts without any
                (folder / name).write_text((tree / name).read_text())
        for name, of_one in (("cpu.shares", 1024), ("cpu.weight", 100)):  # versions 1 and 2
            if (folder / name).exists():
                (folder / name).write_text(str(_WEIGHT * of_one))
        if controllers := _controllers(tree):
            for place in (tree, folder):
                (place / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def remove(cgroup: str) -> None:
    """The cgroup and all beneath it are gone from every tree; nothing there is fine.

    Raises:
        StepError: Some process does not leave it.
    """
    deadline = time.monotonic() + _EMPTY_WITHIN_S
    while left := [path for tree in hierarchies() if (path := tree / cgroup.lstrip("/")).exists()]:
        for folder in left:
            for inner, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):  # the last process of it is about to leave
                    Path(inner).rmdir()
        if time.monotonic() > deadline:
            raise StepError(f"these cgroups do not become empty: {[str(path) for path in left if path.exists()]}")
        time.sleep(0.05)


def _controllers(tree: Path) -> list[str]:
    """What version 2 can divide among groups; nothing in version 1."""
    listed = tree / "cgroup.controllers"
    return listed.read_text().split() if listed.exists() else []
