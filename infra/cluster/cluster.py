"""One cluster: its place, its programs and its parts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from infra.cluster import anchor
from infra.cluster.build import Programs, Say
from infra.cluster.kubectl import Kubectl
from infra.cluster.parts import control_plane, services, worker
from infra.cluster.parts.part import Part
from infra.cluster.places import Place
from infra.cluster.versions import Versions
from seatrial.app.sandbox.supervisor import Supervisor
from seatrial.errors import Unavailable

_CTR_S = 120


@dataclass(frozen=True)
class Cluster:
    """A cluster, whether it runs or not."""

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
        return Kubectl(program, self.place.kubeconfig, self.place.kubectl_cache)

    def ctr(self, *arguments: str) -> str:
        """What containerd's own client answers about the images and containers of Kubernetes.

        Raises:
            Unavailable: It failed.
        """
        socket = str(self.place.containerd_socket)
        command = [self.programs.program("containerd", "ctr"), "--address", socket, "--namespace", "k8s.io"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, check=False, timeout=_CTR_S, env={}
        )
        if done.returncode != 0:
            raise Unavailable(f"ctr {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def parts(self) -> dict[str, Part]:
        """Every part, by name; writes their configuration."""
        place, programs = self.place, self.programs
        parts = (
            control_plane.etcd(place, programs),
            control_plane.apiserver(place, programs),
            control_plane.controller_manager(place, programs),
            control_plane.scheduler(place, programs),
            worker.containerd(place, programs),
            worker.kubelet(place, programs),
            worker.proxy(place, programs),
            services.registry(place, programs),
            services.object_store(place),
            services.tracking(place),
            services.kserve(place, programs),
            services.gateway(place),
        )
        return {part.name: part for part in parts}

    def running(self) -> psutil.Process:
        """The first process of the cluster, whose network this thread enters.

        Raises:
            Unavailable: The cluster is not up.
        """
        first = anchor.find(self.place)
        if first is None:
            raise Unavailable("the cluster is not up: run `python -m infra.cluster up`")
        anchor.enter(first)
        return first


class State(BaseModel):
    """What an `up` leaves for the next command."""

    model_config = ConfigDict(frozen=True)

    whole: bool = False
    """Whether the last one came to its end."""
    settled: bool = False
    """Whether one ever did since the last wipe: what is stored is worth keeping."""
    defined: tuple[str, ...] = ()
    """The files of CRDs that it had then: what is in etcd already is not applied again."""


def state(place: Place) -> State:
    """As it was last kept; an empty one when there is none or it cannot be read."""
    try:
        return State.model_validate_json(place.state.read_bytes())
    except (OSError, ValueError):
        return State()


def keep(place: Place, kept: State) -> None:
    """Keep `kept`, whole or not at all."""
    partial = place.state.with_suffix(".partial")
    partial.write_text(kept.model_dump_json())
    partial.rename(place.state)


def link_programs(folder: Path, programs: Iterable[Path]) -> None:
    """Links to `programs` in `folder`, for PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        link = folder / program.name
        link.unlink(missing_ok=True)
        link.symlink_to(program)


def surroundings(place: Place, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command inside the cluster: `given`, with what kubectl, argo and ctr look at."""
    return {
        **given,
        "PATH": f"{place.bin}:{given.get('PATH', '')}",
        "KUBECONFIG": str(place.kubeconfig),
        "KUBECACHEDIR": str(place.kubectl_cache),
        "CONTAINERD_ADDRESS": str(place.containerd_socket),
        "CONTAINERD_NAMESPACE": "k8s.io",
    }
