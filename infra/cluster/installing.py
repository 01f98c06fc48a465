"""What is put into the cluster once its API answers: CRDs, DNS, Argo, KServe's defaults and webhooks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from infra.cluster import argo, images, kserve
from infra.cluster.cluster import Cluster
from infra.cluster.parts.services import WEBHOOK_URL
from infra.cluster.places import NODE
from infra.cluster.rising import until
from seatrial.errors import Unavailable

MANIFESTS: Final = Path(__file__).with_name("manifests")
_READY_WITHIN_S: Final = 90.0
_DEPLOYMENTS: Final = (("kube-system", "coredns"), ("argo", "workflow-controller"), ("argo", "argo-server"))


def import_images(cluster: Cluster, archives: dict[str, Path]) -> None:
    """Containerd has every image of `archives`."""
    there = set(cluster.ctr("images", "list", "--quiet").split())
    for name, archive in archives.items():
        stamp = cluster.place.data / "containerd" / f"imported-{archive.name}"
        if name not in there or not stamp.exists():
            cluster.ctr("images", "import", "--local", str(archive))
            stamp.touch()


def archives(cluster: Cluster) -> dict[str, Path]:
    """The archives of the cluster's own images, made when they are not there."""
    wanted = images.recipes(cluster.programs, cluster.versions.modules)
    return images.ensure(cluster.programs.cache, wanted, cluster.say)


def definitions(cluster: Cluster) -> None:
    """Every CRD, established; what the node, DNS and the gateway ask for when they start."""
    kubectl, folders = cluster.kubectl, cluster.programs.folders
    kubectl.apply("-f", str(MANIFESTS / "kubelet-client.yaml"), "-f", str(MANIFESTS / "coredns.yaml"))
    kubectl.apply("-k", str(folders["gateway-api"] / "crd"))
    kubectl.apply("-k", str(folders["kserve"] / "config" / "crd"))
    kubectl.apply("-k", str(folders["argo"] / "manifests" / "base" / "crds" / "full"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    kubectl.apply("-f", str(MANIFESTS / "gateway-class.yaml"))
    kubectl.apply_objects(kserve.defaults(folders["kserve"] / "config"))


def workflows(cluster: Cluster) -> None:
    """Argo's controller and server."""
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
    condition = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    try:
        return cluster.kubectl("get", "node", NODE, "-o", condition) == "True"
    except Unavailable:
        return False
