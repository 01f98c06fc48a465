"""The first process of the cluster's namespaces: lays out the node's network and mounts, then becomes supervisord.

    python -m infra.cluster.node <supervisord.conf>

Whatever it sets up ends with its namespaces. It changes nothing of the host.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from infra.cluster.packages import SYSTEM_PATH
from infra.cluster.places import NODE_ADDRESS, NODE_BRIDGE, SERVICE_RANGE

PRIVATE: Final = ("/run/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers")
"""Folders whose place is fixed in containerd, kubelet and network plugins: the cluster sees empty ones of its own."""

_HOST_SETTINGS: Final = (
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"),
    *("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"),
)
"""What kubelet sets to its liking for the whole host: it is given copies to set, and ends where it may not.

Source: setupKernelTunables in kubernetes 1.36, pkg/kubelet/cm/container_manager_linux.go.
"""

_SETTINGS: Final = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",  # a service's answer between two pods of one bridge passes its rules
}


def command(conf: Path) -> list[str]:
    """How this is started, with supervisord's configuration `conf`."""
    return [sys.executable, "-m", "infra.cluster.node", str(conf)]


def main() -> None:
    """Set the node up, then run supervisord in this process's place."""
    os.environ["PATH"] = SYSTEM_PATH
    for folder in PRIVATE:
        _run("mount", "-t", "tmpfs", "-o", "mode=0755", "seatrial", folder)
    for name in _HOST_SETTINGS:
        setting, scratch = Path("/proc/sys", name), Path(PRIVATE[0], name.replace("/", "."))
        scratch.write_text(setting.read_text())
        _run("mount", "--bind", str(scratch), str(setting))
    _run("mount", "--make-rshared", "/")  # as on any node: what kubelet mounts, containers see
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", NODE_BRIDGE, "type", "bridge")
    _run("ip", "address", "add", f"{NODE_ADDRESS}/24", "dev", NODE_BRIDGE)
    _run("ip", "link", "set", NODE_BRIDGE, "up")
    # Without a default route the node itself would not even try a Service's address.
    _run("ip", "route", "add", SERVICE_RANGE, "dev", NODE_BRIDGE)
    for name, value in _SETTINGS.items():
        Path("/proc/sys", name).write_text(value)
    surroundings = {"PATH": SYSTEM_PATH, "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}
    supervisord = [sys.executable, "-m", "supervisor.supervisord", "--nodaemon", "-c", sys.argv[1]]
    os.execve(sys.executable, supervisord, surroundings)  # noqa: S606 - it is to be this process


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
