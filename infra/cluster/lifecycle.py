"""Bringing the cluster up and down. `up` finds one that runs; what fails to come up is named and taken down again."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from infra.cluster import anchor, argo, cgroups, images, kserve, kubeconfigs, node, pki
from infra.cluster.build import Programs, Say
from infra.cluster.kubectl import Kubectl
from infra.cluster.parts import control_plane, services, worker
from infra.cluster.parts.part import Part
from infra.cluster.places import CHECKOUT, NODE, Place
from infra.cluster.toolchain import tail
from infra.cluster.versions import Versions
from seatrial.app.sandbox.supervisor import Process, Supervisor, main_section, program_section
from seatrial.app.sandbox.triton import exclusive
from seatrial.errors import StepError, Unavailable

MANIFESTS: Final = Path(__file__).with_name("manifests")
STOPPING: Final = (
    ("kubelet", "kube-proxy", "traefik", "kserve", "mlflow"),
    ("kube-controller-manager", "kube-scheduler", "registry"),
    ("kube-apiserver", "containerd", "s3"),
    ("etcd",),
)
"""Who calls ends before who is called."""

_NAMESPACES_WITHIN_S: Final = 10.0
_DEPLOYED_WITHIN_S: Final = 90.0
_FALLS_MAX: Final = 3
"""So often may a part end while it comes up."""
_POLL_S: Final = 0.05


@dataclass(frozen=True)
class Cluster:
    """A cluster and what it is made of."""

    place: Place
    programs: Programs
    versions: Versions
    say: Say

    @property
    def supervisor(self) -> Supervisor:
        """Of its parts."""
        return Supervisor(self.place.supervisor_socket)

    @property
    def kubectl(self) -> Kubectl:
        """As the administrator."""
        program = self.programs.program("kubernetes", "kubectl")
        return Kubectl(program, self.place.kubeconfig, self.place.root / "kubectl-cache")

    def parts(self) -> dict[str, Part]:
        """Every part, by name; writes their configuration."""
        place, programs = self.place, self.programs
        return {
            part.name: part
            for part in (
                control_plane.etcd(place, programs),
                worker.containerd(place, programs),
                control_plane.apiserver(place, programs),
                services.registry(place, programs),
                services.object_store(place),
                control_plane.controller_manager(place, programs),
                control_plane.scheduler(place, programs),
                worker.kubelet(place, programs),
                worker.proxy(place, programs),
                services.kserve(place, programs),
                services.gateway(place),
                services.tracking(place),
            )
        }


def up(cluster: Cluster) -> None:
    """Bring the cluster up, or find it and start what was stopped; every part is well when this returns.

    Raises:
        Unavailable: A part does not come up; it is named, and everything was taken down again.
    """
    place = cluster.place
    place.root.mkdir(parents=True, exist_ok=True)
    with exclusive(place.lock):
        first = anchor.find(place)
        if first is not None and _whole(place) and cluster.supervisor.alive():
            anchor.enter(first)
            _wake(cluster)
            return
        _clear(cluster)
        try:
            _start(cluster)
        except BaseException:
            _clear(cluster)
            raise


def _start(cluster: Cluster) -> None:
    place = cluster.place
    archives = images.ensure(
        cluster.programs.folders["pause"].parent,
        images.recipes(cluster.programs, cluster.versions.modules),
        cluster.say,
    )
    clock = Clock(cluster.say)
    _lay_out(cluster)
    conf = _write_supervisor(place)
    anchor.start(place, [anchor.python(), "-m", "infra.cluster.node", str(conf)])
    anchor.enter(anchor.wait_for(place, _NAMESPACES_WITHIN_S))
    _until(cluster.supervisor.alive, _NAMESPACES_WITHIN_S, f"supervisord; the log is {place.logs / 'node.log'}")
    clock.lap("namespaces")
    rising = Rising(cluster, cluster.parts(), clock)
    rising.begin("etcd", "containerd", "registry", "s3")
    rising.reach("etcd")
    rising.begin("kube-apiserver")
    rising.reach("containerd")
    for name, archive in archives.items():
        _import(cluster, name, archive)
    clock.lap("images")
    rising.reach("kube-apiserver")
    rising.begin("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
    _apply_first(cluster)
    clock.lap("CRDs")
    rising.begin("kserve", "traefik", "mlflow")
    rising.reach("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
    _until(lambda: _node_ready(cluster.kubectl), _DEPLOYED_WITHIN_S, f"the node; see {place.logs / 'kubelet.log'}")
    clock.lap("node ready")
    _apply_argo(cluster)
    rising.reach("kserve")
    _apply_webhooks(cluster)
    clock.lap("webhooks")
    rising.reach("traefik", "registry", "s3", "mlflow")
    for namespace, name in (("kube-system", "coredns"), ("argo", "workflow-controller"), ("argo", "argo-server")):
        cluster.kubectl(
            "-n", namespace, "rollout", "status", f"deployment/{name}", f"--timeout={_DEPLOYED_WITHIN_S:.0f}s"
        )
        clock.lap(name)
    _remember(place, whole=True)


class Clock:
    """Says how long each thing took since the one before."""

    def __init__(self, say: Say) -> None:
        self._say, self._last = say, time.monotonic()

    def lap(self, what: str) -> None:
        """`what` is done."""
        now = time.monotonic()
        self._say(f"{what:<26}{now - self._last:6.1f} s")
        self._last = now


class Rising:
    """Parts on their way up."""

    def __init__(self, cluster: Cluster, parts: dict[str, Part], clock: Clock | None = None) -> None:
        self._cluster, self._parts, self._clock = cluster, parts, clock

    def begin(self, *names: str) -> None:
        """Let supervisord start these."""
        for name in names:
            conf = self._cluster.place.supervisor / "pods" / f"{name}.conf"
            conf.write_text(program_section(self._parts[name].program))
            conf.chmod(0o600)
            self._cluster.supervisor.add(name)

    def reach(self, *names: str) -> None:
        """Wait until these are well.

        Raises:
            Unavailable: One does not become well in time, or ends again and again.
        """
        for name in names:
            self._reach(self._parts[name])
            if self._clock:
                self._clock.lap(name)

    def _reach(self, part: Part) -> None:
        deadline, falls, was_down = time.monotonic() + part.within_s, 0, False
        while not part.healthy():
            process = self._cluster.supervisor.processes().get(part.name)
            down = process is None or (process.state != "RUNNING" and process.state != "STARTING")
            falls, was_down = falls + (down and not was_down), down
            if falls >= _FALLS_MAX or time.monotonic() > deadline:
                raise Unavailable(_complaint(part, "ends again and again" if falls >= _FALLS_MAX else "is not well"))
            time.sleep(_POLL_S)


def _complaint(part: Part, what: str) -> str:
    return f"{part.name} {what}; the end of {part.program.log}:\n{tail(part.program.log)}"


def _lay_out(cluster: Cluster) -> None:
    place = cluster.place
    for folder in (place.config, place.data, place.logs, place.supervisor / "pods", place.bin):
        folder.mkdir(parents=True, exist_ok=True)
    place.root.chmod(0o755)
    place.run.mkdir(mode=0o700, exist_ok=True)
    made = [folder for folder in node.PRIVATE if not Path(folder).exists()]
    _remember(place, whole=False, made=made)
    for folder in node.PRIVATE:
        Path(folder).mkdir(parents=True, exist_ok=True)
    cgroups.make(place.cgroup)
    pki.ensure(place.pki)
    kubeconfigs.write_all(place)
    for program in cluster.programs.all():
        link = place.bin / program.name
        link.unlink(missing_ok=True)
        link.symlink_to(program)


def _write_supervisor(place: Place) -> Path:
    for conf in (place.supervisor / "pods").glob("*.conf"):
        conf.unlink()
    conf = place.supervisor / "supervisord.conf"
    conf.write_text(
        main_section(
            socket_path=place.supervisor_socket, folder=place.supervisor, identity=str(place.root), user="root"
        )
    )
    return conf


def _import(cluster: Cluster, name: str, archive: Path) -> None:
    done = _ctr(cluster, "images", "import", "--local", str(archive))
    if done.returncode != 0:
        raise Unavailable(f"containerd does not take the image {name}: {done.stderr.strip()}")


def _ctr(cluster: Cluster, *arguments: str) -> object:
    import subprocess

    program = cluster.programs.program("containerd", "ctr")
    command = [program, "--address", str(cluster.place.containerd_socket), "--namespace", "k8s.io", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def _apply_first(cluster: Cluster) -> None:
    """What the parts ask for when they start: CRDs, defaults, the gateway's class, DNS."""
    kubectl, folders = cluster.kubectl, cluster.programs.folders
    kubectl.apply("-f", str(MANIFESTS / "kubelet-client.yaml"), "-f", str(MANIFESTS / "coredns.yaml"))
    kubectl.apply("-k", str(folders["gateway-api"] / "crd"))
    kubectl.apply("-k", str(folders["kserve"] / "config" / "crd"))
    kubectl.apply("-k", str(folders["argo"] / "manifests" / "base" / "crds" / "full"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    kubectl.apply("-f", str(MANIFESTS / "gateway-class.yaml"))
    kubectl.apply_objects(kserve.defaults(folders["kserve"] / "config"))


def _apply_argo(cluster: Cluster) -> None:
    folder = cluster.programs.folders["argo"] / "manifests" / "cluster-install-no-crds"
    objects = cluster.kubectl.rendered(folder)
    cluster.kubectl.apply_objects(argo.for_this_cluster(objects, cluster.versions.modules["argo"].version))


def _apply_webhooks(cluster: Cluster) -> None:
    config = cluster.programs.folders["kserve"] / "config"
    authority = (cluster.place.pki / "ca.crt").read_bytes()
    cluster.kubectl.apply_objects(kserve.webhooks(config, url=services.WEBHOOK_URL, authority=authority))


def _node_ready(kubectl: Kubectl) -> bool:
    condition = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    with contextlib.suppress(Unavailable):
        return kubectl("get", "node", NODE, "-o", condition) == "True"
    return False


def _until(true: Callable[[], bool], within_s: float, what: str) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            raise Unavailable(f"after {within_s:.0f} s this is not well: {what}")
        time.sleep(_POLL_S)


def _wake(cluster: Cluster) -> None:
    """Start what was stopped, and see that everything is well."""
    for process in cluster.supervisor.processes().values():
        if process.over:
            cluster.supervisor.start(process.name)
    parts = cluster.parts()
    Rising(cluster, parts).reach(*parts)


def down(cluster: Cluster, *, wipe: bool) -> None:
    """End the cluster; the host is as it was. With `wipe`, what it stored is gone too. Nothing there is fine.

    Raises:
        StepError: Something of it cannot be ended or removed.
    """
    if not cluster.place.root.is_dir():
        cluster.say("nothing was running")
        return
    with exclusive(cluster.place.lock):
        ran = _clear(cluster)
    if wipe:
        shutil.rmtree(cluster.place.root)
    cluster.say("stopped: nothing of it is left on this host" if ran else "nothing was running")


def _clear(cluster: Cluster) -> bool:
    """Everything of the cluster outside its folder is gone when this returns; whether it ran."""
    place = cluster.place
    first = anchor.find(place)
    if first is not None:
        _end_guests(cluster, first)
        with contextlib.suppress(Unavailable):  # it hangs, or died meanwhile: the end of the anchor ends the rest
            _stop_parts(cluster)
    ran = anchor.end(place)
    cgroups.remove(place.cgroup)
    for path in services.store_sockets(place):
        path.unlink(missing_ok=True)
    shutil.rmtree(place.run, ignore_errors=True)
    for folder in _made(place):
        with contextlib.suppress(OSError):  # somebody else uses it by now
            Path(folder).rmdir()
    return ran


def _end_guests(cluster: Cluster, first: psutil.Process) -> None:
    guests = anchor.guests(first)
    if not guests:
        return
    cluster.say(f"ending {len(guests)} processes that are inside the cluster's network")
    for act in (psutil.Process.terminate, psutil.Process.kill):
        for process in guests:
            with contextlib.suppress(psutil.NoSuchProcess):
                act(process)
        _, guests = psutil.wait_procs(guests, timeout=3)


def _stop_parts(cluster: Cluster) -> None:
    supervisor = cluster.supervisor
    known = supervisor.processes()
    for group in STOPPING:
        names = [name for name in group if name in known]
        for name in names:
            supervisor.stop(name)
        _until(lambda names=names: all(supervisor.processes()[n].over for n in names), 15, ", ".join(names))  # type: ignore[misc]


def _whole(place: Place) -> bool:
    return bool(_state(place).get("whole"))


def _made(place: Place) -> list[str]:
    made = _state(place).get("made", [])
    return [str(folder) for folder in made] if isinstance(made, list) else []


def _state(place: Place) -> dict[str, object]:
    try:
        return dict(json.loads(place.state.read_text()))
    except (OSError, json.JSONDecodeError):
        return {}


def _remember(place: Place, *, whole: bool, made: list[str] | None = None) -> None:
    state = {"whole": whole, "made": _made(place) if made is None else sorted({*made, *_made(place)})}
    place.state.write_text(json.dumps(state))


def restart(cluster: Cluster, name: str) -> None:
    """Stop a part and start it; it is well when this returns."""
    stop(cluster, name)
    start(cluster, name)


def stop(cluster: Cluster, name: str) -> None:
    """Stop a part; it stays so until `start` or `up`."""
    known(cluster, name)
    cluster.supervisor.stop(name)
    _until(lambda: cluster.supervisor.processes()[name].over, 15, name)


def start(cluster: Cluster, name: str) -> None:
    """Start a part; it is well when this returns."""
    known(cluster, name)
    cluster.supervisor.start(name)
    Rising(cluster, cluster.parts()).reach(name)


def known(cluster: Cluster, name: str) -> Process:
    """The part as supervisord knows it; enters the cluster's network on the way."""
    first = anchor.find(cluster.place)
    if first is None:
        raise Unavailable("the cluster is not up: run `python -m infra.cluster up`")
    anchor.enter(first)
    found = cluster.supervisor.processes()
    if name not in found:
        raise StepError(f"no part is called {name}; they are {', '.join(sorted(found))}")
    return found[name]


def checkout_place() -> Place:
    """The cluster of this checkout."""
    from infra.cluster.places import place_of

    return place_of(CHECKOUT)
