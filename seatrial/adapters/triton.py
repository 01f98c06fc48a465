"""A `tritonserver` of our own on a model repository: start, ask over HTTP, stop.

It is started as in the serving container, on free loopback ports. SEATRIAL_TRITON names the executable.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from seatrial.errors import InvalidInput, Unavailable, shortened
from seatrial.ports import Answer

TRITON: Final = "SEATRIAL_TRITON"
STARTS: Final = 3
"""Tries when somebody takes a port between our look and Triton's."""
STOP_S: Final = 15
"""Seconds after SIGTERM before SIGKILL; over --exit-timeout-secs."""
ASK_S: Final = 30
LOG_TAIL: Final = 200_000
"""Characters of the log that are searched for a cause."""
SECRET_PREFIXES: Final = ("SEATRIAL_", "AWS_")
"""Environment that a model server has no business with: keys and credentials."""

_PR_SET_PDEATHSIG: Final = 1
_PRCTL: Final = ctypes.CDLL(None).prctl

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SYNTAX = re.compile(r"\[libprotobuf ERROR [^\]]*\] (.*)")
_REFUSED = re.compile(r"^E\d{4} \S+ \d+ (?:model_lifecycle|model_repository_manager)\.cc:\d+\] (.*)$", re.MULTILINE)
_ERROR = re.compile(r"^(?:E\d{4} [^\]]*\] |error: )(.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class TritonServer:
    """A Triton that is ready for one version of one model."""

    url: str
    """Of the version: http://127.0.0.1:<port>/v2/models/<model>/versions/<version>"""
    ready_s: float
    """Seconds from its start until the version was ready."""
    client: httpx.Client

    def ask(self, request: bytes) -> Answer:
        """Send one Open Inference Protocol request body (JSON)."""
        started = time.monotonic()
        try:
            response = self.client.post(
                f"{self.url}/infer", content=request, headers={"content-type": "application/json"}
            )
        except httpx.HTTPError as error:
            return Answer(status=0, version=None, error=shortened(error), seconds=time.monotonic() - started)
        return _answer(response, time.monotonic() - started)

    def statistics(self) -> Mapping[str, Any]:
        """What Triton counted for the version.

        Raises:
            Unavailable: It does not answer.
        """
        try:
            response = self.client.get(f"{self.url}/stats")
            response.raise_for_status()
            statistics: Mapping[str, Any] = response.json()["model_stats"][0]
        except (httpx.HTTPError, ValueError, KeyError, IndexError) as error:
            raise Unavailable(f"triton gives no statistics: {shortened(error)}") from error
        return statistics


@contextmanager
def boot(repository: Path, *, model_name: str, version: int, log: Path, within_s: float) -> Iterator[TritonServer]:
    """See `seatrial.triton.server.Boot`."""
    started = time.monotonic()
    process, port = _start(repository, model_name, version, log, started + within_s)
    try:
        with httpx.Client(timeout=ASK_S, trust_env=False) as client:
            yield TritonServer(url=_url(port, model_name, version), ready_s=time.monotonic() - started, client=client)
    finally:
        _stop(process)


def _start(
    repository: Path, model_name: str, version: int, log: Path, deadline: float
) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(STARTS):
        ports = _free_ports(3)
        process = _spawn(repository, ports, log)
        try:
            ready = _wait(process, f"{_url(ports[0], model_name, version)}/ready", deadline)
        except BaseException:
            _stop(process)
            raise
        if ready:
            return process, ports[0]
        ended = process.poll() is not None
        _stop(process)
        if ended and any(not _is_free(port) for port in ports):
            continue  # somebody was faster
        cause = _cause(log)
        if ended:
            raise InvalidInput(f"triton cannot serve this model: {cause}")
        raise Unavailable(f"triton was not ready in time; its log ends with: {cause}")
    raise Unavailable(f"no free port for triton in {STARTS} tries: somebody takes them as fast as we look")


def _spawn(repository: Path, ports: tuple[int, ...], log: Path) -> subprocess.Popen[bytes]:
    http, grpc, metrics = ports
    executable = os.environ.get(TRITON) or "tritonserver"
    command = [
        executable,
        f"--model-repository={repository.resolve()}",
        "--model-control-mode=explicit",
        "--load-model=*",
        "--strict-readiness=true",
        "--exit-timeout-secs=5",
        *(f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")),
        f"--http-port={http}",
        f"--grpc-port={grpc}",
        f"--metrics-port={metrics}",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(SECRET_PREFIXES)}
    try:
        with log.open("wb") as output:
            return subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, no Python lock is touched
            )
    except OSError as error:
        raise Unavailable(
            f"there is no triton to boot: {executable!r} cannot be started ({shortened(error)}); set {TRITON} to a "
            "tritonserver"
        ) from error


def _die_with_parent() -> None:
    """A step that is killed leaves no Triton behind. Source: prctl(2)."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], url: str, deadline: float) -> bool:
    """Whether the version became ready; False when the process ended or time ran out."""
    with httpx.Client(timeout=2, trust_env=False) as client:
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(httpx.HTTPError):
                if client.get(url).status_code == httpx.codes.OK:
                    return True
            time.sleep(0.05)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End Triton and the processes that it started, which share its group."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _cause(log: Path) -> str:
    """Why Triton gave up, in its own words: a fault in a config, a model that it refused, else its last error."""
    text = _COLOUR.sub("", log.read_text(errors="replace")[-LOG_TAIL:])
    found = _SYNTAX.findall(text) or _REFUSED.findall(text) or _ERROR.findall(text)[-1:] or text.splitlines()[-1:]
    return shortened(found[0].strip('"').split("\\n")[0] if found else "it printed nothing")


def _answer(response: httpx.Response, seconds: float) -> Answer:
    try:
        body = response.json()
        outputs = {entry["name"]: [float(value) for value in entry["data"]] for entry in body.get("outputs", [])}
        version = int(body["model_version"]) if "model_version" in body else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Answer(
            status=response.status_code,
            version=None,
            error=f"no answer of the protocol: {shortened(response.text)} ({shortened(error)})",
            seconds=seconds,
        )
    return Answer(
        status=response.status_code,
        version=version,
        outputs=outputs,
        error=shortened(body.get("error", "")),
        seconds=seconds,
    )


def _url(port: int, model_name: str, version: int) -> str:
    return f"http://127.0.0.1:{port}/v2/models/{model_name}/versions/{version}"


def _free_ports(count: int) -> tuple[int, ...]:
    """Ports that nobody listens on at this moment, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return tuple(server.getsockname()[1] for server in sockets)
    finally:
        for server in sockets:
            server.close()


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
