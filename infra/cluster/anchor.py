"""The process whose end ends the cluster: everything runs beneath it in its network, mount and process namespaces.

It is found by its environment, never by a number in a file: a number may have become a stranger's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import psutil

from infra.cluster.packages import SYSTEM_PATH
from infra.cluster.places import CHECKOUT, Place
from seatrial.errors import StepError, Unavailable

IDENTITY_VARIABLE: Final = "SEATRIAL_CLUSTER_ANCHOR"
"""In the environment of the anchor alone: which cluster's it is."""

_CLONE_NEWNET: Final = 0x40000000
_GONE_WITHIN_S: Final = 10.0


def anchors(processes: Iterable[tuple[int, Mapping[str, str]]], root: Path) -> list[int]:
    """The pids of those (pid, environment) that hold the cluster at `root`."""
    return [pid for pid, environment in processes if environment.get(IDENTITY_VARIABLE) == str(root)]


def start(place: Place, command: list[str]) -> subprocess.Popen[bytes]:
    """Run `command` as the first process of new namespaces, in a session of its own; give back the anchor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    place.logs.mkdir(parents=True, exist_ok=True)
    with (place.logs / "node.log").open("w") as log:
        return subprocess.Popen(
            ["unshare", *namespaces, "--", *command],
            cwd=CHECKOUT,
            env={"PATH": SYSTEM_PATH, "HOME": str(place.root), IDENTITY_VARIABLE: str(place.root)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def find(place: Place) -> psutil.Process | None:
    """The first process inside the namespaces, as the host sees it; None when the cluster does not run."""
    for pid in anchors(_environments(), place.root):
        with contextlib.suppress(psutil.NoSuchProcess):
            inside = [child for child in psutil.Process(pid).children() if child.status() != psutil.STATUS_ZOMBIE]
            if inside:
                return inside[0]
    return None


def any_runs() -> bool:
    """Whether any cluster runs on this host."""
    return any(IDENTITY_VARIABLE in environment for _, environment in _environments())


def enter(first: psutil.Process) -> None:
    """Move this thread, and what it starts, into the cluster's network.

    Raises:
        Unavailable: The cluster ended meanwhile.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        with Path(f"/proc/{first.pid}/ns/net").open() as namespace:
            entered = libc.setns(namespace.fileno(), _CLONE_NEWNET) == 0
    except OSError as error:
        raise Unavailable(f"the cluster ended meanwhile: {error}") from error
    if not entered:
        raise Unavailable(f"the cluster's network cannot be entered: {os.strerror(ctypes.get_errno())}")


def guests(first: psutil.Process) -> list[psutil.Process]:
    """Processes of the host that entered the cluster's network, without this one and those above it."""
    network = _network_of(first.pid)
    own = {os.getpid(), first.pid, first.ppid(), *(parent.pid for parent in psutil.Process().parents())}
    inside = {process.pid for process in _beneath(first)}
    return [p for p in psutil.process_iter() if p.pid not in own | inside and network == _network_of(p.pid) != 0]


def end(place: Place) -> bool:
    """End the cluster's anchors at once, and with them every process beneath; whether there was any.

    Raises:
        StepError: One cannot be ended.
    """
    pids = set(anchors(_environments(), place.root))
    held = [process for process in psutil.process_iter() if process.pid in pids]
    beneath = [process for holder in held for process in _beneath(holder)]
    for process in held:
        process.kill()
    _, alive = psutil.wait_procs([*held, *beneath], timeout=_GONE_WITHIN_S)
    if alive:
        raise StepError(f"these processes of the cluster cannot be ended: {[process.pid for process in alive]}")
    return bool(held)


def _beneath(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _environments() -> Iterable[tuple[int, Mapping[str, str]]]:
    for process in psutil.process_iter():
        try:
            yield process.pid, process.environ()
        except (psutil.Error, OSError):
            continue


def _network_of(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino  # noqa: PTH116 - follows the link to the namespace
    except OSError:
        return 0
