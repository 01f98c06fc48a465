"""Where the cluster keeps things, and the addresses of its parts, which exist inside its network only."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]

NODE: Final = "node1"
NODE_ADDRESS: Final = "10.199.0.1"
NODE_BRIDGE: Final = "node0"
POD_BRIDGE: Final = "pods0"
POD_RANGE: Final = "10.201.0.0/24"
SERVICE_RANGE: Final = "10.96.0.0/16"
SERVICE_API: Final = "10.96.0.1"
SERVICE_DNS: Final = "10.96.0.10"

API: Final = f"https://{NODE_ADDRESS}:6443"
REGISTRY: Final = f"{NODE_ADDRESS}:5000"
"""Plain http."""
S3: Final = f"http://{NODE_ADDRESS}:8333"
BUCKET: Final = "seatrial"
TRACKING: Final = f"http://{NODE_ADDRESS}:5001"
GATEWAY: Final = f"http://{NODE_ADDRESS}:8000"
GATEWAY_METRICS: Final = f"http://{NODE_ADDRESS}:8082"
CONTEXT: Final = "seatrial-test"

_INNER_PORTS: Final = range(34_000, 54_000, 10)
"""Above the sandbox's. SeaweedFS puts sockets that are named by its ports into /tmp, where two clusters meet."""


@dataclass(frozen=True)
class Place:
    """One cluster's folders; two clones never share one."""

    root: Path
    """`.seatrial/cluster`: all that outlives `down`."""

    @property
    def tag(self) -> str:
        """Names what lies outside the clone: the folder of sockets and the cgroup."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()[:10]

    @property
    def run(self) -> Path:
        """Sockets, on a short path; gone after `down`."""
        return Path(f"/run/seatrial-{self.tag}")

    @property
    def cgroup(self) -> str:
        """Every pod's cgroup lies beneath it."""
        return f"/seatrial-{self.tag}"

    @property
    def lock(self) -> Path:
        """Held while the cluster is brought up or down; outlives a wipe."""
        return self.root.with_suffix(".lock")

    @property
    def state(self) -> Path:
        """What `down` needs to know of the last `up`."""
        return self.root / "cluster.json"

    @property
    def pki(self) -> Path:
        """Certificates and keys; only root may enter."""
        return self.root / "pki"

    @property
    def secrets(self) -> Path:
        """`store.json`: the object store's one identity."""
        return self.root / "secrets"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, whole in one file."""
        return self.root / "kubeconfig"

    @property
    def config(self) -> Path:
        """Configuration files of the parts."""
        return self.root / "config"

    @property
    def data(self) -> Path:
        """What the parts store, one folder each."""
        return self.root / "data"

    @property
    def logs(self) -> Path:
        """One file for each part."""
        return self.root / "logs"

    @property
    def supervisor(self) -> Path:
        """Supervisord's configuration and log."""
        return self.root / "supervisor"

    @property
    def programs(self) -> Path:
        """One file of supervisord's configuration for each part."""
        return self.supervisor / "pods"

    @property
    def kubectl_cache(self) -> Path:
        """What kubectl remembers of the API, out of the user's home."""
        return self.root / "kubectl-cache"

    @property
    def bin(self) -> Path:
        """Links to every program, for PATH."""
        return self.root / "bin"

    @property
    def supervisor_socket(self) -> Path:
        """Where supervisord listens."""
        return self.run / "supervisor.sock"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.run / "containerd.sock"

    @property
    def inner_port(self) -> int:
        """The first of ten ports by which SeaweedFS's own servers talk to each other."""
        return _INNER_PORTS[int(self.tag, 16) % len(_INNER_PORTS)]


def place_of(checkout: Path) -> Place:
    """The cluster of a checkout."""
    return Place(checkout / ".seatrial" / "cluster")


def cache() -> Path:
    """Where built programs lie, by version: `$SEATRIAL_CACHE/cluster`, by default in the user's own cache."""
    chosen = os.environ.get("SEATRIAL_CACHE")
    return (Path(chosen) if chosen else Path.home() / ".cache" / "seatrial") / "cluster"
