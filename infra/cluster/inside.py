"""Commands inside the cluster's network, with its programs on PATH."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NoReturn

from infra.cluster.cluster import Cluster, surroundings
from infra.cluster.places import API, GATEWAY, GATEWAY_METRICS, REGISTRY, S3, TRACKING
from seatrial.errors import InvalidInput


def run(cluster: Cluster, command: list[str]) -> NoReturn:
    """Become `command`, in the cluster's network; signals and the exit code are its own.

    Raises:
        InvalidInput: There is no such program.
        Unavailable: The cluster is not up.
    """
    cluster.running()
    environment = surroundings(cluster.place, os.environ)
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - it is to be this process
    except OSError as error:
        raise InvalidInput(f"{command[0]} cannot be run: {error.strerror}") from error


def shell(cluster: Cluster) -> NoReturn:
    """Become an interactive shell that first says what is where."""
    with tempfile.NamedTemporaryFile("w", prefix="seatrial-", suffix=".sh", delete=False) as file:
        file.write(f"rm -f {file.name}\n[ -f ~/.bashrc ] && . ~/.bashrc\n")
        file.write(
            f"PATH={cluster.place.bin}:$PATH; PS1='(seatrial-test) '\"$PS1\"\ncat <<'GREETING'\n{greeting()}GREETING\n"
        )
    run(cluster, ["bash", "--rcfile", str(Path(file.name)), "-i"])


def greeting() -> str:
    """What is where."""
    places = {
        "kubectl, argo, ctr": f"on PATH; the API is {API}",
        "images": f"{REGISTRY}/seatrial/<name>, plain http",
        "object store": S3,
        "MLflow": TRACKING,
        "gateway": f"{GATEWAY}, its metrics {GATEWAY_METRICS}/metrics",
        "Argo's server": "kubectl -n argo port-forward service/argo-server 2746",
        "out": "nothing leads out of this network; `exit` does",
    }
    return "".join(f"  {name:<20} {where}\n" for name, where in places.items())
