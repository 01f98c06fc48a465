"""Taking the cluster down, however much of it is up: in order where it answers, by the end of its anchor always."""

from __future__ import annotations

import contextlib
import shutil
from typing import Final

import psutil

from infra.cluster import anchor, cgroups, host_folders, rising
from infra.cluster.cluster import Cluster
from infra.cluster.parts import services
from seatrial.errors import Unavailable

STOPPING: Final = (
    ("kubelet", "kube-proxy", "traefik", "kserve", "mlflow"),
    ("kube-controller-manager", "kube-scheduler", "registry"),
    ("kube-apiserver", "containerd", "s3"),
    ("etcd",),
)
"""Who calls ends before who is called. Pods end with the anchor, as in a power cut."""

_GUESTS_WITHIN_S: Final = 3.0


def clear(cluster: Cluster) -> bool:
    """Nothing of the cluster is left outside its folder when this returns; whether it ran.

    Raises:
        StepError: Something of it cannot be ended or removed.
    """
    place = cluster.place
    first = anchor.find(place)
    if first is not None:
        _end_guests(cluster, first)
        with contextlib.suppress(Unavailable):  # it hangs, or died meanwhile: the end of the anchor ends the rest
            for names in STOPPING:
                rising.stop(cluster, *names)
    ran = anchor.end(place)
    cgroups.remove(place.cgroup)
    for path in services.store_sockets(place):
        path.unlink(missing_ok=True)
    shutil.rmtree(place.run, ignore_errors=True)
    host_folders.remove(others_run=anchor.any_runs())
    return ran


def _end_guests(cluster: Cluster, first: psutil.Process) -> None:
    """End what entered the network from outside: as long as it lives, the network does."""
    guests = anchor.guests(first)
    if guests:
        cluster.say(f"ending {len(guests)} processes that are inside the cluster's network")
    for act in (psutil.Process.terminate, psutil.Process.kill):
        for process in guests:
            with contextlib.suppress(psutil.NoSuchProcess):
                act(process)
        _, guests = psutil.wait_procs(guests, timeout=_GUESTS_WITHIN_S)
