"""Argo's own manifests, changed for this cluster: images made here, one controller that looks every second."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

NAMESPACE: Final = "argo"

_IMAGES: Final = {
    "quay.io/argoproj/workflow-controller": "localhost/workflow-controller",
    "quay.io/argoproj/argocli": "localhost/argocli",
}
"""Image of the manifests → image made here."""


def for_this_cluster(objects: Iterable[Mapping[str, Any]], version: str) -> list[dict[str, Any]]:
    """The objects of `cluster-install-no-crds`, in the namespace that they need, with our changes.

    Where artifacts go is not said here: it stands beside the workflows, in `artifact-repositories`.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [namespace, *(_changed(copy.deepcopy(dict(found)), version) for found in objects)]


def _changed(found: dict[str, Any], version: str) -> dict[str, Any]:
    if found["kind"] == "Deployment":
        template = found["spec"]["template"]["spec"]
        (container,) = template["containers"]
        container["image"] = f"{_IMAGES[container['image'].rpartition(':')[0]]}:{version}"
        container["imagePullPolicy"] = "Never"
        _DEPLOYMENTS[found["metadata"]["name"]](found, container, version)
    return found


def _controller(deployment: dict[str, Any], container: dict[str, Any], version: str) -> None:
    container["args"] = [
        f"--executor-image=localhost/argoexec:{version}",
        "--executor-image-pull-policy=Never",
        "--loglevel=info",
    ]
    container.setdefault("env", []).extend(
        [
            {"name": "LEADER_ELECTION_DISABLE", "value": "true"},
            {"name": "DEFAULT_REQUEUE_TIME", "value": "1s"},
        ]
    )
    # Nobody is elected, so two controllers must never overlap: each would undo the other's work.
    deployment["spec"]["strategy"] = {"type": "Recreate"}


def _server(deployment: dict[str, Any], container: dict[str, Any], version: str) -> None:  # noqa: ARG001 - one shape
    container["args"] = ["server", "--auth-mode=client", "--secure=false"]
    container["readinessProbe"] = {"httpGet": {"port": 2746, "path": "/"}, "periodSeconds": 1}


_DEPLOYMENTS: Final = {"workflow-controller": _controller, "argo-server": _server}
