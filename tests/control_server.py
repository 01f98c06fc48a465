"""The sandbox's control API on a loopback port, for as long as a block lasts."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn

from seatrial.app.sandbox import environment
from seatrial.app.sandbox.control import api as control
from seatrial.app.sandbox.control.storage import Objects
from seatrial.app.sandbox.places import write_json


@dataclass
class Api:
    """A running control API."""

    http: httpx.Client
    kubeconfig: Path
    runs: Path
    folder: Path


@contextmanager
def control_api(folder: Path) -> Iterator[Api]:
    """Serve it, with its objects in `folder`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        app = control.application(Objects(folder / "objects", "seatrial"), folder / "runs")
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        kubeconfig = folder / "kubeconfig"
        write_json(kubeconfig, environment.kubeconfig(port))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            yield Api(client, kubeconfig, folder / "runs", folder / "objects")
        server.should_exit = True
        thread.join(timeout=5)
