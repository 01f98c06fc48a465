"""Whether the sandbox's own parts answer, each on the path on which it says that it is well."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from typing import Final

from seatrial.app.sandbox.places import HOST, Home
from seatrial.app.sandbox.supervisor import Supervisor
from seatrial.errors import Unavailable, shortened

HEALTHY_WITHIN_S: Final = 90.0
_POLL_S: Final = 0.1

HEALTH: Final[Mapping[str, tuple[str, str]]] = {
    "s3": ("s3", "/healthz"),
    "tracking": ("tracking", "/health"),
    "gateway": ("gateway_metrics", "/ping"),
    "control": ("control", "/readyz"),
}
"""Part → the port and the path on which it says that it is well. The port of its own name is the one that it is for."""


def wait_until_healthy(place: Home, ports: Mapping[str, int], supervisor: Supervisor) -> None:
    """Come back when every part answers.

    Raises:
        Unavailable: One does not in time; its log is named, and how it ends.
    """
    waiting = dict(HEALTH)
    deadline = time.monotonic() + HEALTHY_WITHIN_S
    while waiting:
        for name, (port, path) in list(waiting.items()):
            if _answers(ports[port], path):
                del waiting[name]
        if not waiting:
            return
        if not supervisor.alive() and time.monotonic() > deadline - HEALTHY_WITHIN_S + 5:
            raise Unavailable(f"supervisord is gone; its log is {place.supervisor / 'supervisord.log'}")
        if time.monotonic() > deadline:
            raise Unavailable(_complaint(place, next(iter(waiting))))
        time.sleep(_POLL_S)


def _complaint(place: Home, name: str) -> str:
    log = place.logs / f"{name}.log"
    last = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
    return f"{name} does not answer after {HEALTHY_WITHIN_S:.0f} s; the end of {log}: {shortened(' '.join(last))}"


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
