"""What is put into the cluster once its API answers: CRDs, DNS, Argo, KServe's defaults and webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.cluster import argo, definitions, images, kserve
from infra.cluster.cluster import Cluster, state
from infra.cluster.parts.services import WEBHOOK_URL
from infra.cluster.places import NODE
from infra.cluster.rising import until

MANIFESTS: Final = Path(__file__).with_name("manifests")
_READY_WITHIN_S: Final = 120.0
_DEFINED_WITHIN_S: Final = 120.0
_DEPLOYMENTS: Final = (("kube-system", "coredns"), ("argo", "workflow-controller"), ("argo", "argo-server"))


@dataclass(frozen=True)
class Prepared:
    """What is made before the cluster comes up, and kept in the cache."""

    archives: dict[str, Path]
    """Image → its archive."""
    definitions: dict[str, Path]
    """Part → its CRDs."""


def prepare(cluster: Cluster) -> Prepared:
    """Everything that can be made beforehand, made when it is not there."""
    wanted = images.recipes(cluster.programs, cluster.versions.modules)
    return Prepared(
        archives=images.ensure(cluster.programs.cache, wanted, cluster.say),
        definitions=definitions.ensure(cluster.programs, cluster.kubectl, cluster.say),
    )


def import_images(cluster: Cluster, prepared: Prepared) -> None:
    """The node has every image of the cluster's own pods."""
    there = set(cluster.ctr("images", "list", "--quiet").split())
    for name, archive in prepared.archives.items():
        stamp = cluster.place.data / "containerd" / f"imported-{archive.name}"
        if name not in there or not stamp.exists():
            cluster.ctr("images", "import", "--local", str(archive))
            stamp.touch()


def serving(cluster: Cluster, prepared: Prepared) -> None:
    """What KServe's controller and the gateway ask for when they start: CRDs, defaults, the gateway's class."""
    kubectl = cluster.kubectl
    _define(cluster, prepared, "gateway-api", "kserve")
    kubectl.apply("-f", str(MANIFESTS / "gateway-class.yaml"))
    kubectl.apply_objects(kserve.defaults(cluster.programs.folders["kserve"] / "config"))


def workflow_definitions(cluster: Cluster, prepared: Prepared) -> None:
    """Argo's CRDs, which are large."""
    _define(cluster, prepared, "argo")


def _define(cluster: Cluster, prepared: Prepared, *parts: str) -> None:
    """The CRDs of these are established; those that an earlier `up` left in etcd are not applied again."""
    wait = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=5s")
    files = [prepared.definitions[part] for part in parts]
    for file in files:
        if file.name not in state(cluster.place).defined:
            cluster.kubectl.apply("-f", str(file))
    until(lambda: cluster.kubectl.succeeds(*wait), _DEFINED_WITHIN_S, "the CRDs to be established")


def deployments(cluster: Cluster) -> None:
    """DNS, Argo's controller and server, and the API server's right to ask the kubelet."""
    cluster.kubectl.apply("-f", str(MANIFESTS / "kubelet-client.yaml"), "-f", str(MANIFESTS / "coredns.yaml"))
    folder = cluster.programs.folders["argo"] / "manifests" / "cluster-install-no-crds"
    version = cluster.versions.modules["argo"].version
    cluster.kubectl.apply_objects(argo.for_this_cluster(cluster.kubectl.rendered(folder), version))


def webhooks(cluster: Cluster) -> None:
    """KServe's webhooks, whose controller answers already."""
    authority = (cluster.place.pki / "ca.crt").read_bytes()
    config = cluster.programs.folders["kserve"] / "config"
    cluster.kubectl.apply_objects(kserve.webhooks(config, url=WEBHOOK_URL, authority=authority))


def node_is_ready(cluster: Cluster) -> None:
    """The node takes pods when this returns."""
    until(lambda: _node_ready(cluster), _READY_WITHIN_S, "the node to be ready: see kubelet.log")


def deployments_are_ready(cluster: Cluster) -> None:
    """DNS and Argo run when this returns."""
    for namespace, name in _DEPLOYMENTS:
        timeout = f"--timeout={_READY_WITHIN_S:.0f}s"
        cluster.kubectl("-n", namespace, "rollout", "status", f"deployment/{name}", timeout)


def _node_ready(cluster: Cluster) -> bool:
    return cluster.kubectl.succeeds("wait", "--for=condition=Ready", f"node/{NODE}", "--timeout=5s")
