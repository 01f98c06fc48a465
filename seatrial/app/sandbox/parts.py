"""What runs in a sandbox: its own parts, and every replica that it serves with."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from seatrial.app.sandbox.health import HEALTH
from seatrial.app.sandbox.places import home_of, kept_ports, read_json
from seatrial.app.sandbox.supervisor import Process, Supervisor
from seatrial.errors import Unavailable


class Part(BaseModel):
    """One process of the sandbox."""

    model_config = ConfigDict(frozen=True)

    name: str
    state: str
    """`running`, `starting`, `backoff` (ended and is started again), `stopping`, `stopped`, `exited`, `fatal`."""
    pid: int
    """0 when it does not run."""
    port: int
    note: str


def parts(home: Path) -> list[Part]:
    """Every part of the sandbox at `home`, and every replica that it serves with; all stopped when it is down."""
    place = home_of(home)
    ports = kept_ports(place)
    try:
        running = Supervisor(place.socket).processes()
    except Unavailable:
        running = {}
    base = [_part(name, running.get(name), ports.get(name, 0)) for name in HEALTH]
    folders = sorted(place.pods.iterdir()) if running and place.pods.is_dir() else []
    return base + [_replica(folder, running.get(f"pod-{folder.name}")) for folder in folders]


def _part(name: str, process: Process | None, port: int) -> Part:
    if process is None:
        return Part(name=name, state="stopped", pid=0, port=port, note="")
    return Part(name=name, state=process.state.lower(), pid=process.pid, port=port, note=process.note)


def _replica(folder: Path, process: Process | None) -> Part:
    status = read_json(folder / "status.json")
    ports = read_json(folder / "pod.json").get("ports")
    port = int(ports["http"]) if isinstance(ports, dict) else 0
    note = ", ".join(str(status[key]) for key in ("state", "reason", "message") if status.get(key))
    return _part(f"pod-{folder.name}", process, port).model_copy(update={"note": note})
