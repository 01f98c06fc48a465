"""What the parts are started with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.cluster.build import Programs
from infra.cluster.clearing import STOPPING
from infra.cluster.cluster import Cluster
from infra.cluster.parts import services, worker
from infra.cluster.parts.part import Part, flags, write
from infra.cluster.places import Place
from infra.cluster.versions import read
from seatrial.app.sandbox.supervisor import program_section


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    names = ("kubernetes", "containerd", "cni", "kserve", "docker-registry")
    programs = Programs(tmp_path / "cache", {name: tmp_path / "cache" / name for name in names})
    return Cluster(Place(tmp_path / "cluster"), programs, read(), pytest.fail)


@pytest.fixture
def parts(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> dict[str, Part]:
    monkeypatch.setattr(worker, "which", lambda program: f"/usr/sbin/{program}")
    cluster.place.pki.mkdir(parents=True)
    return cluster.parts()


def test_every_part_has_its_turn_when_the_cluster_stops(parts: dict[str, Part]) -> None:
    assert sorted(name for group in STOPPING for name in group) == sorted(parts)


def test_who_is_called_ends_after_who_calls() -> None:
    turn = {name: number for number, group in enumerate(STOPPING) for name in group}
    assert turn["kubelet"] < turn["kube-apiserver"] < turn["etcd"]
    assert turn["mlflow"] < turn["s3"]


def test_everything_listens_inside_the_clusters_network_only(parts: dict[str, Part]) -> None:
    for part in parts.values():
        assert "0.0.0.0" not in program_section(part.program)  # noqa: S104 - looked for, not bound


def test_no_part_tells_anybody_anything(parts: dict[str, Part]) -> None:
    assert {"--global.sendanonymoususage=false", "--global.checknewversion=false"} <= set(
        parts["traefik"].program.command
    )
    assert "-master.telemetry=false" in parts["s3"].program.command
    assert parts["mlflow"].program.environment["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_pods_lie_under_the_clusters_own_cgroup(cluster: Cluster) -> None:
    assert worker.kubelet_config(cluster.place)["cgroupRoot"] == cluster.place.cgroup


def test_the_registry_is_asked_over_plain_http(cluster: Cluster, parts: dict[str, Part]) -> None:
    hosts = cluster.place.config / "registries" / "10.199.0.1:5000" / "hosts.toml"
    assert hosts.read_text() == 'server = "http://10.199.0.1:5000"\n'
    config = worker.containerd_config(cluster.place, cluster.programs, "/usr/sbin/runc")
    assert f'config_path = "{cluster.place.config}/registries"' in config


def test_what_is_in_the_registry_may_be_deleted(cluster: Cluster, parts: dict[str, Part]) -> None:
    config = json.loads((cluster.place.config / "registry.json").read_text())
    assert config["storage"]["delete"] == {"enabled": True}


def test_the_stores_identity_is_made_once_and_for_its_owner_alone(cluster: Cluster) -> None:
    first = services.store_credentials(cluster.place)
    assert services.store_credentials(cluster.place) == first
    assert (cluster.place.secrets / "store.json").stat().st_mode & 0o077 == 0


def test_the_stores_own_servers_have_ports_of_their_own(parts: dict[str, Part]) -> None:
    ports = [flag.partition("=") for flag in parts["s3"].program.command if ".port" in flag]
    given = [number for _, _, number in ports if number != "0"]
    assert len(given) == len(set(given)) == 10


def test_a_file_that_says_the_same_is_not_written_again(tmp_path: Path) -> None:
    file = write(tmp_path / "folder" / "file", "text")
    file.chmod(0o400)
    before = file.stat().st_mtime_ns
    assert write(file, "text").stat().st_mtime_ns == before


def test_flags_are_name_and_value() -> None:
    assert flags({"port": 1, "dir": Path("/x")}) == ("--port=1", "--dir=/x")
    assert flags({"port": 1}, "-") == ("-port=1",)
