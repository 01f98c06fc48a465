"""Bringing the sandbox up and down: one supervised process tree, found again by its home."""

from __future__ import annotations

import contextlib
import importlib
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from seatrial.app.sandbox import ending, programs, releases
from seatrial.app.sandbox import environment as env
from seatrial.app.sandbox.health import HEALTH, wait_until_healthy
from seatrial.app.sandbox.places import (
    GATEWAY_PORT_VARIABLE,
    HOST,
    NAMESPACE,
    Home,
    checked,
    chosen_ports,
    home_of,
    is_free,
    kept_ports,
    read_json,
    write,
    write_json,
)
from seatrial.app.sandbox.supervisor import IDENTITY_VARIABLE, Supervisor, main_section, program_section
from seatrial.app.sandbox.triton import exclusive, install_triton
from seatrial.errors import InvalidInput, StepError, Unavailable, shortened

Say = Callable[[str], None]

ROOM_MIN_BYTES: Final = 256 << 20
"""A release writes about 60 MB; the object store takes no more when nothing is left."""


class Sandbox(BaseModel):
    """A sandbox that is up."""

    model_config = ConfigDict(frozen=True)

    home: Path
    gateway_url: str
    gateway_metrics_url: str
    control_url: str
    store_url: str
    tracking_url: str
    kubeconfig: Path
    namespace: str
    environment: env.Environment = Field(repr=False, description="ConfigMap or Secret → its values; holds the keys")


def up(home: Path, *, source: Path, say: Say) -> Sandbox:
    """Bring the sandbox at `home` up, or find it; every part answers when this returns.

    Raises:
        InvalidInput: The gateway's fixed port is taken, a needed program is missing, or Triton cannot serve from there.
        Unavailable: A part does not come up in time, and its log is named; or the disk is all but full.
    """
    place = checked(home_of(home))
    place.root.mkdir(parents=True, exist_ok=True)
    _refuse_too_little_room(place)
    with exclusive(place.lock):
        triton = install_triton(place.root, say)
        supervisor = Supervisor(place.socket)
        if supervisor.alive():
            ports = kept_ports(place)
            _refuse_another_port(ports["gateway"])
            _wake(supervisor)
        else:
            ending.sweep(place, say)
            ports = chosen_ports(kept_ports(place), os.environ)
            _write_files(place, ports)
            say("starting the object store, MLflow, the gateway and the control API")
            _start_supervisor(place)
        write_json(place.state, {"ports": ports, "source": str(source.resolve())}, mode=0o600)
        wait_until_healthy(place, ports, supervisor)
        return _sandbox(place, ports, source=source.resolve(), triton=triton)


def find(home: Path) -> Sandbox | None:
    """The sandbox at `home` when it is up; None otherwise. Starts nothing."""
    place = home_of(home)
    state = read_json(place.state)
    if not state or not Supervisor(place.socket).alive():
        return None
    triton = place.root / "triton" / "bin" / "tritonserver"
    return _sandbox(place, kept_ports(place), source=Path(str(state["source"])), triton=triton)


def down(home: Path, *, say: Say, force: bool = False) -> None:
    """Stop every process of the sandbox at `home`; what it stored stays. Nothing there is fine.

    Args:
        home: Of the sandbox.
        say: Gets what is done.
        force: Stop the releases that run in it first, and let them put traffic back.

    Raises:
        InvalidInput: A release runs in it, and `force` is not given.
        StepError: A process or a port is left.
    """
    place = home_of(home)
    if not place.root.is_dir():
        say("nothing was running")
        return
    with exclusive(place.lock):
        if force:
            releases.stop_all(place, say)
        else:
            releases.refuse_while_one_runs(place)
        supervisor = Supervisor(place.socket)
        was_up = supervisor.alive()
        if was_up:
            with contextlib.suppress(Unavailable):  # it died meanwhile, or hangs: the sweep ends what is left
                ending.stop(supervisor)
        left = ending.sweep(place, say)
        for conf in (place.supervisor / "pods").glob("*.conf"):
            conf.unlink()
        held = {name: port for name, port in kept_ports(place).items() if not is_free(port)}
        if held and (was_up or left):
            raise StepError(f"the sandbox's processes are gone, and yet these of its ports are taken: {held}")
    say("stopped: no process and no port is left" if was_up or left else "nothing was running")


def _sandbox(place: Home, ports: Mapping[str, int], *, source: Path, triton: Path) -> Sandbox:
    values = env.environment(place, ports, source=source, base=_serving_base(place), triton=triton)
    return Sandbox(
        home=place.root,
        gateway_url=values["seatrial-gateway"]["SEATRIAL_GATEWAY_URL"],
        gateway_metrics_url=values["seatrial-gateway"]["SEATRIAL_GATEWAY_METRICS_URL"],
        control_url=f"http://{HOST}:{ports['control']}",
        store_url=values["seatrial-store"]["AWS_ENDPOINT_URL_S3"],
        tracking_url=values["seatrial-tracking"]["MLFLOW_TRACKING_URI"],
        kubeconfig=place.kubeconfig,
        namespace=NAMESPACE,
        environment=values,
    )


def _serving_base(place: Home) -> str:
    """The stub base image; the builder makes it, in the layout where it pushes."""
    try:
        builder = importlib.import_module("seatrial.app.builder")
    except ModuleNotFoundError:
        return ""
    return str(builder.ensure_base(place.images))


def _refuse_too_little_room(place: Home) -> None:
    """Databases that cannot be written fail late and in riddles."""
    free = shutil.disk_usage(place.root).free
    if free < ROOM_MIN_BYTES:
        raise Unavailable(
            f"the disk of {place.root} has {free >> 20} MiB left, the sandbox needs {ROOM_MIN_BYTES >> 20}: make room, "
            "or set SEATRIAL_HOME to a folder on another disk"
        )


def _refuse_another_port(kept: int) -> None:
    wanted = os.environ.get(GATEWAY_PORT_VARIABLE, "")
    if wanted and wanted != str(kept):
        raise InvalidInput(
            f"{GATEWAY_PORT_VARIABLE} asks for the gateway on {shortened(repr(wanted))}, but this sandbox is up "
            f"with it on {kept}; run `seatrial down` first"
        )


def _write_files(place: Home, ports: Mapping[str, int]) -> None:
    place.secrets.mkdir(mode=0o700, exist_ok=True)
    place.short.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.short.stat().st_uid != os.getuid():
        raise InvalidInput(
            f"{place.short} belongs to another user; set XDG_RUNTIME_DIR, or use a home with a shorter path"
        )
    for folder in (
        place.logs,
        place.runs,
        place.pods,
        place.objects,
        place.images,
        place.root / "s3",
        place.supervisor / "pods",
    ):
        folder.mkdir(parents=True, exist_ok=True)
    (place.root / "mlflow").mkdir(exist_ok=True)
    for conf in (place.supervisor / "pods").glob("*.conf"):
        conf.unlink()  # the control API adds the replicas again, on ports that are free now
    routes = place.gateway / programs.ROUTES_FILE
    if not routes.exists():
        write(routes, b"{}\n")
    write_json(place.kubeconfig, env.kubeconfig(ports["control"]), mode=0o600)
    sections = [
        main_section(
            socket_path=place.socket,
            folder=place.supervisor,
            identity=str(place.root),
            user=pwd.getpwuid(0).pw_name if os.getuid() == 0 else None,
        ),
        *(program_section(program) for program in programs.all_programs(place, ports, env.store_credentials(place))),
    ]
    write(place.supervisor / "supervisord.conf", "\n".join(sections).encode(), mode=0o600)


def _start_supervisor(place: Home) -> None:
    """It leaves this terminal and process group by itself, so that Ctrl-C here does not reach it."""
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(place.supervisor / "supervisord.conf")]
    surroundings = {**os.environ, IDENTITY_VARIABLE: str(place.root)}
    done = subprocess.run(
        command, cwd=place.root, env=surroundings, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"supervisord did not start: {shortened(done.stderr or done.stdout)}")


def _wake(supervisor: Supervisor) -> None:
    """Start what has ended for good; what is being restarted already is left alone."""
    for process in supervisor.processes().values():
        if process.name in HEALTH and process.over:
            supervisor.start(process.name)
