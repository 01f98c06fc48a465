"""Makes what runs follow what is stored: replicas for InferenceServices, the gateway's file for HTTPRoutes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from seatrial.app.sandbox import images, pod_keeper, programs
from seatrial.app.sandbox.control import pods, routing
from seatrial.app.sandbox.control.kinds import ROUTES, SERVICES, Manifest
from seatrial.app.sandbox.control.status import Pod, next_status
from seatrial.app.sandbox.control.storage import Objects
from seatrial.app.sandbox.places import Home, free_ports, read_json, write, write_json
from seatrial.app.sandbox.supervisor import Program, Supervisor, program_section
from seatrial.errors import IntegrityError, StepError

TICK_S: Final = 0.1
_LOOK_S: Final = 2.0
"""How often supervisord is asked what it runs."""

_PREFIX: Final = "pod-"


class Reconciler:
    """One thread that looks at everything every tick; `publish` may be called from any other."""

    def __init__(self, home: Home, objects: Objects, *, control_port: int) -> None:
        self._home = home
        self._objects = objects
        self._control_port = control_port
        self._supervisor = Supervisor(home.socket)
        self._lock = threading.RLock()
        self._endpoints: dict[str, list[int]] = {}
        self._published: bytes | None = None
        self._running: set[str] = set()
        self._looked_at = 0.0
        self._ending: dict[str, float] = {}
        self._image_errors: dict[str, str] = {}
        self._services: dict[str, Manifest] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        """Publish what is known, then look after it until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; replicas go on."""
        self._stop.set()
        self._thread.join(timeout=5)

    def publish(self) -> None:
        """Bring the gateway's file up to date with the stored routes and the ready replicas."""
        with self._lock:
            routes = self._objects.list(ROUTES)
            stored = {_predictor(service): [] for service in self._objects.list(SERVICES)}
            endpoints = {name: self._endpoints.get(name, empty) for name, empty in stored.items()}
            document = routing.dynamic(routes, endpoints, control_port=self._control_port)
            data = json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
            if data != self._published:
                write(self._home.gateway / programs.ROUTES_FILE, data)
                self._published = data
        for route in routes:
            name, uid = route["metadata"]["name"], route["metadata"]["uid"]
            self._objects.set_status(ROUTES, name, uid, routing.route_status(route, stored, _now()))

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            try:
                self._tick()
            except Exception:  # noqa: BLE001 - one bad object must not end the care for the others
                traceback.print_exc()
                self._stop.wait(1.0)

    def _tick(self) -> None:
        self._look()
        services = {service["metadata"]["name"]: service for service in self._objects.list(SERVICES)}
        found: dict[str, list[Pod]] = {}
        for name, service in services.items():
            found[name] = [self._tend(service, pod) for pod in pods.pod_names(service)]
        with self._lock:
            self._endpoints = {
                _predictor(service): [pod.http_port for pod in found[name] if pod.ready]
                for name, service in services.items()
            }
        self.publish()
        for name, service in services.items():
            status = next_status(service, found[name], _now())
            self._objects.set_status(SERVICES, name, service["metadata"]["uid"], status)
        self._end_surplus({pod for service in services.values() for pod in pods.pod_names(service)})
        self._services |= services

    def _look(self) -> None:
        if time.monotonic() - self._looked_at >= _LOOK_S:
            names = {name for name, process in self._supervisor.processes().items() if not process.over}
            self._running = {name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)}
            self._looked_at = time.monotonic()

    def _tend(self, service: Manifest, name: str) -> Pod:
        """See that one replica runs; how it is."""
        folder = self._home.pods / name
        uid = service["metadata"]["uid"]
        if name in self._running and read_json(folder / "owner.json").get("uid") == uid:
            return _pod(folder, name)
        if name in self._running or name in self._ending:  # of an earlier object with this name
            return Pod(name=name, waiting="ContainerCreating")
        reason = self._start(service, name, folder)
        return Pod(name=name, waiting=reason) if reason else _pod(folder, name)

    def _start(self, service: Manifest, name: str, folder: Path) -> str:
        """Start one replica; why it waits, or empty."""
        if not pods.schedulable(service):
            return _note(folder, "Unschedulable", "0/1 nodes are available: the node does not match the node selector")
        try:
            root = images.unpack(self._home.images, pods.image_digest(service), self._home.repositories)
        except (images.ImageMissing, IntegrityError) as error:
            return _note(folder, "ErrImagePull", str(error))
        shutil.rmtree(folder, ignore_errors=True)
        ports = dict(zip(("http", "grpc", "metrics"), free_ports(3, but=self._taken()), strict=True))
        pod = pods.pod(
            service,
            root=root,
            ports=ports,
            triton=self._home.root / "triton" / "bin" / "tritonserver",
            path=os.environ.get("PATH", os.defpath),
        )
        write_json(folder / "pod.json", pod)
        write_json(folder / "owner.json", {"uid": service["metadata"]["uid"]})
        program = Program(
            name=_PREFIX + name,
            command=(sys.executable, "-P", str(Path(pod_keeper.__file__)), str(folder)),
            environment=programs.QUIET,
            directory=folder,
            log=self._home.logs / f"{_PREFIX}{name}.log",
            stop_s=int(pods.GRACE_MAX_S) + 2,
        )
        write(self._conf(name), program_section(program).encode())
        self._supervisor.add(program.name)
        self._running.add(name)
        return ""

    def _taken(self) -> frozenset[int]:
        """Ports that other replicas have or are about to take."""
        taken: set[int] = set()
        for path in self._home.pods.glob("*/pod.json"):
            ports = read_json(path).get("ports")
            taken |= set(ports.values()) if isinstance(ports, dict) else set()
        return frozenset(taken)

    def _end_surplus(self, wanted: set[str]) -> None:
        """Stop replicas of deleted objects, some time after the gateway has forgotten them."""
        for name in sorted(self._running - wanted):
            service = self._services.get(name.rpartition("-")[0])
            wait_s = pods.pre_stop_s(service) if service else pods.PRE_STOP_MAX_S
            end_at = self._ending.setdefault(name, time.monotonic() + wait_s)
            if time.monotonic() >= end_at:
                self._end(name)
        for folder in self._home.pods.iterdir():
            if folder.name not in wanted | self._running:
                shutil.rmtree(folder, ignore_errors=True)

    def _end(self, name: str) -> None:
        process = self._supervisor.processes().get(_PREFIX + name)
        if process is not None and not process.over:
            if process.state != "STOPPING":
                self._supervisor.stop(process.name)
            return
        if process is not None:
            self._supervisor.remove(process.name)
        self._conf(name).unlink(missing_ok=True)
        self._running.discard(name)
        self._ending.pop(name, None)

    def _conf(self, name: str) -> Path:
        return self._home.supervisor / "pods" / f"{name}.conf"


def _predictor(service: Manifest) -> str:
    return f"{service['metadata']['name']}-predictor"


def _note(folder: Path, reason: str, message: str) -> str:
    """Write down why nothing runs yet, for `seatrial status`."""
    status = {"state": "waiting", "reason": reason, "message": message}
    if read_json(folder / "status.json") != status:
        write_json(folder / "status.json", status)
    return reason


def _pod(folder: Path, name: str) -> Pod:
    """How a replica is, by its keeper's own word; a keeper that is gone has none."""
    status: dict[str, Any] = read_json(folder / "status.json")
    ports: Any = read_json(folder / "pod.json").get("ports", {})
    last: Any = status.get("last") or {}
    alive = _alive(status.get("keeper")) and _alive(status.get("container"))
    running = status.get("state") == "running"
    return Pod(
        name=name,
        ready=bool(status.get("ready")) and alive,
        http_port=int(ports.get("http", 0)),
        waiting="" if running else str(status.get("reason", "ContainerCreating")),
        exit_code=last.get("exit_code"),
        exit_reason=str(last.get("reason", "")),
        exit_time=datetime.fromtimestamp(last["at"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if last else "",
    )


def _alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise StepError(f"process {pid} of the sandbox belongs to somebody else") from error
    return True


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
