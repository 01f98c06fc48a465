"""Where the sandbox keeps things, and on which ports its parts listen."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seatrial.errors import InvalidInput, Unavailable, shortened

NAMESPACE: Final = "seatrial"
BUCKET: Final = "seatrial"
HOST: Final = "127.0.0.1"

GATEWAY_PORT_VARIABLE: Final = "SEATRIAL_GATEWAY_PORT"
"""Fixes the gateway's port; every other port is chosen free and kept."""

PORTS: Final = (
    "gateway",
    "gateway_metrics",
    "control",
    "tracking",
    "s3",
    "s3_grpc",
    "master",
    "master_grpc",
    "volume",
    "volume_grpc",
    "filer",
    "filer_grpc",
    "admin",
    "admin_grpc",
)

_PORT_FIRST, _PORT_LAST = 20_000, 32_000
"""Below the range that Linux gives to outgoing connections, so that a kept port stays ours between two starts."""

_ADMIN_LAST: Final = 22_700
"""10000 above it is still below that range."""

_ODD: Final = re.compile(r"[^A-Za-z0-9/._+,~#=@%:-]")
"""What a path may not hold."""

_SOCKET_PATH_MAX: Final = 90
"""Unix socket paths have at most 108 bytes; supervisord binds a longer temporary name first."""


@dataclass(frozen=True)
class Home:
    """The folder `.seatrial` and what lies in it."""

    root: Path

    @property
    def state(self) -> Path:
        """Ports and source of the sandbox; only its owner may read it."""
        return self.root / "sandbox.json"

    @property
    def lock(self) -> Path:
        """Held while the sandbox is brought up or down."""
        return self.root / "sandbox.lock"

    @property
    def logs(self) -> Path:
        """One file for each part."""
        return self.root / "logs"

    @property
    def images(self) -> Path:
        """The OCI layout that stands for a registry."""
        return self.root / "images"

    @property
    def runs(self) -> Path:
        """The runner's runs, one folder each."""
        return self.root / "runs"

    @property
    def releases(self) -> Path:
        """One file for each release that runs now."""
        return self.root / "releasing"

    @property
    def secrets(self) -> Path:
        """Keys and credentials; only the owner may enter."""
        return self.root / "secrets"

    @property
    def kubeconfig(self) -> Path:
        """For any Kubernetes client: it points at the control API."""
        return self.root / "kubeconfig"

    @property
    def objects(self) -> Path:
        """What the control API stores."""
        return self.root / "control" / "objects"

    @property
    def pods(self) -> Path:
        """One folder for each replica: what to run, how it is, its log."""
        return self.root / "control" / "pods"

    @property
    def repositories(self) -> Path:
        """Root folders of images, taken apart, by digest."""
        return self.root / "control" / "images"

    @property
    def gateway(self) -> Path:
        """The folder with the gateway's routes."""
        return self.root / "gateway"

    @property
    def supervisor(self) -> Path:
        """Supervisord's own configuration and log."""
        return self.root / "supervisor"

    @property
    def short(self) -> Path:
        """A folder for unix sockets, whose paths may not be long."""
        inside = self.root / "run"
        if len(os.fsencode(inside)) + 16 <= _SOCKET_PATH_MAX:
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - a folder of our own in it, mode 0700
        return Path(base) / f"seatrial-{os.getuid()}-{digest}"

    @property
    def socket(self) -> Path:
        """Where supervisord listens."""
        return self.short / "sv.sock"


def home_of(path: Path) -> Home:
    """The home at `path`, by its real place, however it was named."""
    return Home(path.expanduser().resolve())


def checked(home: Home) -> Home:
    """`home`, when Triton can serve from it.

    Its Python backend hands paths to `bash -c` without quotes, and to an interpreter that knows ASCII only.
    Source: stub_launcher.cc of triton-inference-server/python_backend 24.10.

    Raises:
        InvalidInput: The path has characters that do not come through.
    """
    odd = sorted(set(_ODD.findall(str(home.root))))
    if odd:
        raise InvalidInput(
            f"triton cannot serve from a path with {' '.join(map(repr, odd))} in it, and all local state lies at "
            f"{home.root}: set SEATRIAL_HOME to a folder with a plain path, or move the checkout"
        )
    return home


def is_free(port: int) -> bool:
    """Whether `port` can be listened on at 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_ports(count: int, *, but: frozenset[int] = frozenset()) -> list[int]:
    """`count` different ports that are free now and not in `but`."""
    start = random.randrange(_PORT_FIRST, _PORT_LAST)  # noqa: S311 - spreads homes apart, guards nothing
    ring = [*range(start, _PORT_LAST), *range(_PORT_FIRST, start)]
    found: list[int] = []
    for port in ring:
        if len(found) == count:
            return found
        if port not in but and is_free(port):
            found.append(port)
    raise Unavailable(f"no {count} free ports between {_PORT_FIRST} and {_PORT_LAST}")


def kept_ports(place: Home) -> dict[str, int]:
    """Part → port, as the sandbox was given them last; empty: it never was up."""
    ports = read_json(place.state).get("ports")
    return {str(name): int(port) for name, port in ports.items()} if isinstance(ports, dict) else {}


def chosen_ports(kept: Mapping[str, int], environment: Mapping[str, str]) -> dict[str, int]:
    """A port for each of `PORTS`: the kept one while it is free, another one where a stranger took it.

    Raises:
        InvalidInput: The gateway's port is fixed by the environment, and is no port or taken.
    """
    ports = {name: port for name, port in kept.items() if name in PORTS and is_free(port)}
    fixed = environment.get(GATEWAY_PORT_VARIABLE, "")
    if fixed:
        ports["gateway"] = _fixed(fixed)
    if not {"admin", "admin_grpc"} <= ports.keys():
        ports |= _admin_ports(frozenset(ports.values()))
    missing = [name for name in PORTS if name not in ports]
    return ports | dict(zip(missing, free_ports(len(missing), but=frozenset(ports.values())), strict=True))


def _admin_ports(but: frozenset[int]) -> dict[str, int]:
    """SeaweedFS's own worker looks for the admin server's gRPC at 10000 above its HTTP, whatever its flags say."""
    start = random.randrange(_PORT_FIRST, _ADMIN_LAST)  # noqa: S311
    for port in (*range(start, _ADMIN_LAST), *range(_PORT_FIRST, start)):
        pair = {"admin": port, "admin_grpc": port + 10_000}
        if not but & set(pair.values()) and all(map(is_free, pair.values())):
            return pair
    raise Unavailable(f"no two free ports 10000 apart between {_PORT_FIRST} and {_ADMIN_LAST + 10_000}")


def _fixed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65_535):
        raise InvalidInput(f"{GATEWAY_PORT_VARIABLE} must be a port number, 1 to 65535; got {shortened(repr(text))}")
    if not is_free(int(text)):
        raise InvalidInput(
            f"port {text} is taken by another program, and {GATEWAY_PORT_VARIABLE} fixes the gateway on it; "
            f"stop that program, or unset {GATEWAY_PORT_VARIABLE} to let a free port be chosen"
        )
    return int(text)


def write(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write under a temporary name, then rename: a reader sees the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.rename(path)


def write_json(path: Path, value: object, *, mode: int = 0o644) -> None:
    """`write` of JSON for people too."""
    write(path, json.dumps(value, indent=1, sort_keys=True).encode() + b"\n", mode=mode)


def read_json(path: Path) -> dict[str, object]:
    """The JSON object in `path`; empty when there is none, or none that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
