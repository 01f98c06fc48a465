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

import psutil

from seatrial.app.sandbox import images, pod_keeper, programs
from seatrial.app.sandbox.control import pods, routing
from seatrial.app.sandbox.control.kinds import ROUTES, SERVICES, Manifest
from seatrial.app.sandbox.control.status import Pod, next_status
from seatrial.app.sandbox.control.storage import Objects
from seatrial.app.sandbox.places import Home, free_ports, read_json, write, write_json
from seatrial.app.sandbox.supervisor import Program, Supervisor, program_section
from seatrial.errors import IntegrityError

TICK_S: Final = 0.1
_LOOK_S: Final = 2.0
"""How often supervisord is asked what it runs."""

_IMAGE_RETRY_S: Final = 2.0

_PREFIX: Final = "pod-"


class Reconciler:
    """One thread that looks at everything every tick; `publish` may be called from any other."""

    def __init__(self, home: Home, objects: Objects, *, control_port: int) -> None:
        self._home = home
        self._objects = objects
        self._control_port = control_port
        self._supervisor = Supervisor(home.socket)
        self._lock = threading.RLock()
        self._endpoints: dict[str, list[int]] | None = None  # None: nothing looked at yet, so nothing is published
        self._published: bytes | None = None
        self._running: set[str] = set()
        self._looked_at = 0.0
        self._ending: dict[str, float] = {}
        self._image_errors: dict[str, tuple[float, str]] = {}
        self._pre_stop_s: dict[str, float] = {}
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
        with self._objects.lock, self._lock:  # in this order everywhere
            if self._endpoints is None:
                return
            stored = [_predictor(service) for service in self._objects.list(SERVICES)]
            endpoints = {name: self._endpoints.get(name, []) for name in stored}
            document = routing.dynamic(self._objects.list(ROUTES), endpoints, control_port=self._control_port)
            data = json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
            if data != self._published:
                write(self._home.gateway / programs.ROUTES_FILE, data)
                self._published = data

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
        found = {
            name: [self._tend(service, pod) for pod in pods.pod_names(service)] for name, service in services.items()
        }
        with self._lock:
            self._endpoints = {
                _predictor(service): [pod.http_port for pod in found[name] if pod.ready]
                for name, service in services.items()
            }
        self.publish()
        self._write_statuses(services, found)
        self._end_surplus(services)
        images.forget_others(self._home.repositories, self._images_in_use(services))

    def _write_statuses(self, services: dict[str, Manifest], found: dict[str, list[Pod]]) -> None:
        for name, service in services.items():
            status = next_status(service, found[name], _now())
            self._objects.set_status(SERVICES, name, service["metadata"]["uid"], status)
        for route in self._objects.list(ROUTES):
            status = routing.route_status(route, map(_predictor, services.values()), _now())
            self._objects.set_status(ROUTES, route["metadata"]["name"], route["metadata"]["uid"], status)

    def _look(self) -> None:
        if time.monotonic() - self._looked_at >= _LOOK_S:
            names = {name for name, process in self._supervisor.processes().items() if not process.over}
            self._running = {name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)}
            self._looked_at = time.monotonic()

    def _tend(self, service: Manifest, name: str) -> Pod:
        """See that one replica runs; how it is."""
        folder = self._home.pods / name
        self._pre_stop_s[name] = pods.pre_stop_s(service)
        if name in self._running and _owner(folder) == service["metadata"]["uid"]:
            return _pod(folder, name)
        if name in self._running or name in self._ending:  # of an earlier object with this name
            return Pod(name=name, waiting="ContainerCreating")
        reason = self._start(service, name, folder)
        return Pod(name=name, waiting=reason) if reason else _pod(folder, name)

    def _start(self, service: Manifest, name: str, folder: Path) -> str:
        """Start one replica; why it waits, or empty."""
        if not pods.schedulable(service):
            return _note(folder, "Unschedulable", "0/1 nodes are available: the node does not match the node selector")
        root = self._image(pods.image_digest(service))
        if isinstance(root, str):
            return _note(folder, "ErrImagePull", root)
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
        owner = {"uid": service["metadata"]["uid"], "image": pods.image_digest(service)}
        write_json(folder / "owner.json", owner)
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

    def _image(self, digest: str) -> Path | str:
        """The image's root folder, or why there is none; asked again only after a while."""
        retry_at, message = self._image_errors.get(digest, (0.0, ""))
        if time.monotonic() < retry_at:
            return message
        try:
            return images.unpack(self._home.images, digest, self._home.repositories)
        except (images.ImageMissing, IntegrityError) as error:
            self._image_errors[digest] = (time.monotonic() + _IMAGE_RETRY_S, str(error))
            return str(error)

    def _images_in_use(self, services: dict[str, Manifest]) -> set[str]:
        """Digests of what a service asks for, or a replica on its way out still runs from."""
        running = {str(read_json(path).get("image")) for path in self._home.pods.glob("*/owner.json")}
        return running | {pods.image_digest(service) for service in services.values()}

    def _taken(self) -> frozenset[int]:
        """Ports that other replicas have or are about to take."""
        taken: set[int] = set()
        for path in self._home.pods.glob("*/pod.json"):
            ports = read_json(path).get("ports")
            taken |= set(ports.values()) if isinstance(ports, dict) else set()
        return frozenset(taken)

    def _end_surplus(self, services: dict[str, Manifest]) -> None:
        """Stop replicas whose object is gone, some time after the gateway has forgotten them."""
        owners = {pod: service["metadata"]["uid"] for service in services.values() for pod in pods.pod_names(service)}
        for name in sorted(self._running):
            if owners.get(name) != _owner(self._home.pods / name):
                wait_s = self._pre_stop_s.get(name, pods.PRE_STOP_MAX_S)
                if time.monotonic() >= self._ending.setdefault(name, time.monotonic() + wait_s):
                    self._end(name)
        for folder in self._home.pods.iterdir():
            if folder.name not in owners.keys() | self._running:
                shutil.rmtree(folder, ignore_errors=True)
                self._pre_stop_s.pop(folder.name, None)

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


def _owner(folder: Path) -> object:
    """The uid of the object that a replica was started for."""
    return read_json(folder / "owner.json").get("uid")


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
    try:
        return isinstance(pid, int) and pid > 0 and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
