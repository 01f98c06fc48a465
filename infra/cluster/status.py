"""What runs of the cluster, as the host sees it: process ids, memory, state."""

from __future__ import annotations

import json

import psutil
from pydantic import BaseModel, ConfigDict

from infra.cluster import anchor
from infra.cluster.cluster import Cluster
from seatrial.errors import Unavailable

_MEBIBYTE = 2**20


class Part(BaseModel):
    """One part, or all pods together."""

    model_config = ConfigDict(frozen=True)

    name: str
    state: str
    pid: int
    """On the host; 0 when it does not run."""
    memory_mib: int
    """Resident, with its children."""


def parts(cluster: Cluster) -> list[Part]:
    """Every part that supervisord knows, then `pods`; nothing when the cluster is down."""
    first = anchor.find(cluster.place)
    try:
        known = cluster.supervisor.processes() if first else {}
    except Unavailable:
        known = {}
    if first is None or not known:
        return []
    outside = {_inner_pid(child.pid): child for child in first.children()}
    shown, seen = [], {first.pid}
    for name, process in sorted(known.items()):
        family = _family(outside.get(process.pid)) if process.pid else []
        seen |= {member.pid for member in family}
        pid = family[0].pid if family else 0
        shown.append(Part(name=name, state=process.state.lower(), pid=pid, memory_mib=_memory(family)))
    rest = [child for child in first.children(recursive=True) if child.pid not in seen]
    return [*shown, Part(name="pods", state=f"{len(rest)} processes", pid=0, memory_mib=_memory(rest))]


def as_json(cluster: Cluster) -> str:
    """For programs."""
    return json.dumps([part.model_dump() for part in parts(cluster)], indent=2) + "\n"


def as_table(cluster: Cluster) -> str:
    """For people."""
    shown = parts(cluster)
    if not shown:
        return "the cluster is down\n"
    lines = [f"{part.name:<26}{part.state:<16}{part.pid or '':>8}{part.memory_mib:>7} MiB" for part in shown]
    return "\n".join([*lines, f"{'all':<50}{sum(part.memory_mib for part in shown):>7} MiB"]) + "\n"


def _family(process: psutil.Process | None) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)] if process else []
    except psutil.NoSuchProcess:
        return []


def _memory(processes: list[psutil.Process]) -> int:
    total = 0
    for process in processes:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return round(total / _MEBIBYTE)


def _inner_pid(pid: int) -> int:
    """The process's number inside the cluster's namespace."""
    try:
        with open(f"/proc/{pid}/status") as file:  # noqa: PTH123
            return inner_pid(file.read())
    except OSError:
        return 0


def inner_pid(status: str) -> int:
    """From the text of /proc/<pid>/status, the second of the numbers that the process has."""
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            numbers = line.split()[1:]
            return int(numbers[1]) if len(numbers) > 1 else 0
    return 0
