"""Bringing the cluster up and down. `up` finds one that runs; what fails to come up is named and taken down again."""

from __future__ import annotations

import shutil
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from infra.cluster import anchor, cgroups, clearing, host_folders, installing, kubeconfigs, node, pki, rising
from infra.cluster.cluster import Cluster, State, keep, link_programs, state
from infra.cluster.installing import Prepared
from infra.cluster.places import Place
from infra.cluster.rising import Clock, Rising, until
from infra.cluster.toolchain import tail
from seatrial.app.sandbox.supervisor import Process, main_section
from seatrial.app.sandbox.triton import exclusive
from seatrial.errors import InvalidInput, Unavailable

_NAMESPACES_WITHIN_S: Final = 15.0


def up(cluster: Cluster) -> None:
    """Bring the cluster up, or find it and start what was stopped; every part is well when this returns.

    Raises:
        Unavailable: A part does not come up; it is named, and everything was taken down again.
    """
    place = cluster.place
    place.root.mkdir(parents=True, exist_ok=True)
    with exclusive(place.lock):
        first = anchor.find(place)
        if first is not None and state(place).whole and cluster.supervisor.alive():
            anchor.enter(first)
            _wake(cluster)
            cluster.say("the cluster was up")
            return
        clearing.clear(cluster)
        try:
            _start(cluster)
        except BaseException:
            clearing.clear(cluster)
            raise


def _start(cluster: Cluster) -> None:
    prepared = installing.prepare(cluster)
    clock = Clock(cluster.say)
    _lay_out(cluster)
    _make_namespaces(cluster)
    clock.lap("namespaces")
    with ThreadPoolExecutor(max_workers=1) as beside:
        _rise(cluster, Rising(cluster, clock), prepared, beside)
    defined = tuple(file.name for file in prepared.definitions.values())
    keep(cluster.place, State(whole=True, settled=True, defined=defined))
    clock.total("up")


def _rise(cluster: Cluster, parts: Rising, prepared: Prepared, beside: Executor) -> None:
    """Start what is asked before what asks; images are read `beside`, while the API server takes in the CRDs."""
    parts.begin("etcd", "containerd", "registry", "s3")
    parts.reach("etcd")
    parts.begin("kube-apiserver")
    parts.reach("containerd")
    images = beside.submit(installing.import_images, cluster, prepared)
    parts.reach("registry", "s3", "kube-apiserver")
    parts.begin("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
    installing.serving(cluster, prepared)
    parts.did("gateway and KServe CRDs")
    parts.reach("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
    parts.begin("kserve", "traefik", "mlflow")
    installing.workflow_definitions(cluster, prepared)
    parts.did("Argo's CRDs")
    images.result()
    parts.did("images")
    installing.node_is_ready(cluster)
    parts.did("node ready")
    installing.deployments(cluster)
    parts.did("DNS and Argo installed")
    parts.reach("kserve")
    installing.webhooks(cluster)
    parts.did("webhooks")
    parts.reach("traefik", "mlflow")
    installing.deployments_are_ready(cluster)
    parts.did("DNS and Argo ready")


def _lay_out(cluster: Cluster) -> None:
    """Folders, keys and links, and outside of the cluster's folder what it needs there."""
    place = cluster.place
    if not state(place).settled:
        # A CRD whose API server ends before it is established stays so for good: a half-made store is made anew.
        shutil.rmtree(place.data, ignore_errors=True)
    for folder in (place.config, place.data, place.logs, place.programs):
        folder.mkdir(parents=True, exist_ok=True)
    keep(place, state(place).model_copy(update={"whole": False}))
    host_folders.make(node.PRIVATE)
    place.run.mkdir(mode=0o700, exist_ok=True)
    cgroups.make(place.cgroup)
    pki.ensure(place.pki)
    kubeconfigs.write_all(place)
    link_programs(place.bin, cluster.programs.for_people())


def _make_namespaces(cluster: Cluster) -> None:
    """Start supervisord, without any program yet, as the first process of new namespaces, and enter its network."""
    place = cluster.place
    started = anchor.start(place, node.command(_write_supervisor(place)))
    until(lambda: cluster.supervisor.alive() or started.poll() is not None, _NAMESPACES_WITHIN_S, "the namespaces")
    first = anchor.find(place)
    if first is None:
        log = place.logs / "node.log"
        raise Unavailable(f"the cluster's namespaces cannot be made; the end of {log}:\n{tail(log)}")
    anchor.enter(first)


def _write_supervisor(place: Place) -> Path:
    for conf in place.programs.glob("*.conf"):
        conf.unlink()
    conf = place.supervisor / "supervisord.conf"
    socket, folder = place.supervisor_socket, place.supervisor
    conf.write_text(main_section(socket_path=socket, folder=folder, identity=str(place.root), user="root"))
    return conf


def _wake(cluster: Cluster) -> None:
    """Start what was stopped, and see that everything is well."""
    for process in cluster.supervisor.processes().values():
        if process.over:
            cluster.supervisor.start(process.name)
    Rising(cluster).everything()


def down(cluster: Cluster, *, wipe: bool) -> None:
    """End the cluster; the host is as it was. With `wipe`, what it stored is gone too. Nothing there is fine.

    Raises:
        StepError: Something of it cannot be ended or removed.
    """
    place = cluster.place
    if not place.root.is_dir():
        cluster.say("nothing was running")
        return
    with exclusive(place.lock):
        ran = clearing.clear(cluster)
        if wipe:
            shutil.rmtree(place.root)
    cluster.say("stopped: nothing of the cluster is left on this host" if ran else "nothing was running")


def stop(cluster: Cluster, name: str) -> None:
    """Stop a part; it stays so until `start` or `up`."""
    _part(cluster, name)
    rising.stop(cluster, name)


def start(cluster: Cluster, name: str) -> None:
    """Start a part; it is well when this returns."""
    _part(cluster, name)
    cluster.supervisor.start(name)
    Rising(cluster).reach(name)


def restart(cluster: Cluster, name: str) -> None:
    """Stop a part and start it; it is well when this returns."""
    stop(cluster, name)
    start(cluster, name)


def _part(cluster: Cluster, name: str) -> Process:
    cluster.running()
    known = cluster.supervisor.processes()
    if name not in known:
        raise InvalidInput(f"no part is called {name}; there are {', '.join(sorted(known))}")
    return known[name]
