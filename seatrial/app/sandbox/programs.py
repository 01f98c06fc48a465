"""The sandbox's parts as supervised programs: what each is started with. All on 127.0.0.1, all telemetry off."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from seatrial.app.sandbox.places import BUCKET, HOST, Home
from seatrial.app.sandbox.supervisor import Program
from seatrial.app.sandbox.triton import ROOT
from seatrial.errors import InvalidInput

LATENCY_BUCKETS_S: Final = tuple(round(0.0005 * 1.5**power, 6) for power in range(25))
"""The one grid of latency buckets, 0.5 ms to 8.4 s, log-spaced by 1.5; Traefik's own start at 100 ms."""

ROUTES_FILE: Final = "routes.yml"

QUIET: Final[Mapping[str, str]] = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GX_ANALYTICS_ENABLED": "false",
}
"""No part reports to anybody."""

PYTHON: Final[Mapping[str, str]] = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
"""For parts that are modules of this checkout, wherever the command was started."""


def all_programs(home: Home, ports: Mapping[str, int], credentials: Mapping[str, str]) -> list[Program]:
    """Every part that runs from `up` to `down`."""
    return [seaweedfs(home, ports, credentials), tracking(home, ports), gateway(home, ports), control(home, ports)]


def seaweedfs(home: Home, ports: Mapping[str, int], credentials: Mapping[str, str]) -> Program:
    """The object store. Its own port for the S3 API; the others are how its servers talk to each other."""
    flags = {
        "dir": home.root / "s3",
        "ip": HOST,
        "ip.bind": HOST,
        "bucket": BUCKET,
        "master.telemetry": "false",
        "admin.ui": "false",
        "webdav": "false",
        "s3.iam": "false",
        "s3.port": ports["s3"],
        "s3.port.grpc": ports["s3_grpc"],
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "master.port": ports["master"],
        "master.port.grpc": ports["master_grpc"],
        "volume.port": ports["volume"],
        "volume.port.grpc": ports["volume_grpc"],
        "filer.port": ports["filer"],
        "filer.port.grpc": ports["filer_grpc"],
        "admin.port": ports["admin"],
        "admin.port.grpc": ports["admin_grpc"],
        "filer.localSocket": home.short / "filer.sock",
        "s3.localSocket": home.short / "s3.sock",
    }
    return Program(
        name="s3",
        command=(_program("weed"), "mini", *(f"-{name}={value}" for name, value in flags.items())),
        environment={**QUIET, **credentials},
        directory=home.root,
        log=home.logs / "s3.log",
        stop_s=3,  # it does not care for SIGTERM in good time, and what it took is on the disk
    )


def tracking(home: Home, ports: Mapping[str, int]) -> Program:
    """MLflow in one process."""
    folder = home.root / "mlflow"
    arguments = ("--database", str(folder / "mlflow.db"), "--artifacts", str(folder / "artifacts"))
    return Program(
        name="tracking",
        command=(
            sys.executable,
            "-m",
            "seatrial.app.sandbox.mlflow_server",
            *arguments,
            "--port",
            str(ports["tracking"]),
        ),
        environment={**QUIET, **PYTHON, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        directory=home.root,
        log=home.logs / "tracking.log",
        stop_s=3,
    )


def traefik(web: str, metrics: str, provider: Mapping[str, object]) -> dict[str, object]:
    """Traefik's flags: one entry point for requests, one for ping and metrics; the same grid of buckets everywhere.

    Args:
        web: host:port of the requests.
        metrics: host:port of ping and metrics.
        provider: Where routes come from: names below `providers.`.
    """
    return {
        "global.checknewversion": "false",
        "global.sendanonymoususage": "false",
        "entrypoints.web.address": web,
        "entrypoints.web.transport.lifecycle.gracetimeout": "1s",
        "entrypoints.metrics.address": metrics,
        "entrypoints.metrics.transport.lifecycle.gracetimeout": "1s",
        "ping": "true",
        "ping.entrypoint": "metrics",
        "metrics.prometheus": "true",
        "metrics.prometheus.entrypoint": "metrics",
        "metrics.prometheus.addserviceslabels": "true",
        "metrics.prometheus.buckets": ",".join(f"{bound:g}" for bound in LATENCY_BUCKETS_S),
        **{f"providers.{name}": value for name, value in provider.items()},
        "serverstransport.forwardingtimeouts.dialtimeout": "2s",
        "log.level": "INFO",
    }


def gateway(home: Home, ports: Mapping[str, int]) -> Program:
    """Traefik: routes from a file that the control API writes, one entry point for requests and one for metrics."""
    provider = {"file.filename": home.gateway / ROUTES_FILE, "file.watch": "true", "providersthrottleduration": "50ms"}
    flags = traefik(f"{HOST}:{ports['gateway']}", f"{HOST}:{ports['gateway_metrics']}", provider)
    return Program(
        name="gateway",
        command=(_program("traefik"), *(f"--{name}={value}" for name, value in flags.items())),
        environment=QUIET,
        directory=home.root,
        log=home.logs / "gateway.log",
        stop_s=3,
    )


def control(home: Home, ports: Mapping[str, int]) -> Program:
    """The control API and its reconciler."""
    return Program(
        name="control",
        command=(
            sys.executable,
            "-m",
            "seatrial.app.sandbox.control",
            "--home",
            str(home.root),
            "--port",
            str(ports["control"]),
        ),
        environment={**QUIET, **PYTHON},
        directory=home.root,
        log=home.logs / "control.log",
        stop_s=3,
    )


def _program(name: str) -> str:
    """A program that came with the environment that this Python runs in, or stands on PATH."""
    beside = Path(sys.executable).with_name(name)
    found = shutil.which(str(beside)) or shutil.which(name, path=os.environ.get("PATH"))
    if found is None:
        raise InvalidInput(f"the program {name} is missing: looked beside {sys.executable} and on PATH; run `make run`")
    return found
