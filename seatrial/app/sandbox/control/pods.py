"""From an InferenceService to the processes on this machine that stand for its pods: pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from seatrial.app.sandbox.control.admission import amount
from seatrial.app.sandbox.control.kinds import Manifest
from seatrial.app.sandbox.places import HOST

NODE_LABELS: Final[Mapping[str, str]] = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
"""Of the one node that this machine is."""

PRE_STOP_MAX_S: Final = 0.5
"""A pod's preStop sleep is cut to this: the gateway of the sandbox follows a change within 0.1 s."""

GRACE_MAX_S: Final = 6.0
"""The termination grace period is cut to this."""

ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "--http-port": ("--http-port={http}", f"--http-address={HOST}"),
    "--grpc-port": ("--grpc-port={grpc}", f"--grpc-address={HOST}"),
    "--metrics-port": ("--metrics-port={metrics}", f"--metrics-address={HOST}"),
    "--model-repository": ("--model-repository={root}{value}",),
    "--http-address": (),
    "--grpc-address": (),
    "--metrics-address": (),
}
"""What arguments of the cluster's Triton become here; every other one is taken as it is."""

_DEFAULTS: Final[Mapping[str, str]] = {"--http-port": "8000", "--grpc-port": "8001", "--metrics-port": "8002"}
"""Triton's own, for arguments that are not given."""


def schedulable(service: Manifest) -> bool:
    """Whether the one node has every label that the pod asks for."""
    selector = service["spec"]["predictor"].get("nodeSelector", {})
    return all(NODE_LABELS.get(key) == value for key, value in selector.items())


def image_digest(service: Manifest) -> str:
    """Of the one container's image."""
    return str(service["spec"]["predictor"]["containers"][0]["image"]).partition("@")[2]


def pod_names(service: Manifest) -> list[str]:
    """One for each replica."""
    name = service["metadata"]["name"]
    return [f"{name}-{index}" for index in range(service["spec"]["predictor"]["minReplicas"])]


def pre_stop_s(service: Manifest) -> float:
    """How long a deleted pod still answers, cut to this machine's measure."""
    container = service["spec"]["predictor"]["containers"][0]
    return min(float(container["lifecycle"]["preStop"]["sleep"]["seconds"]), PRE_STOP_MAX_S)


def pod(service: Manifest, *, root: Path, ports: Mapping[str, int], triton: Path, path: str) -> dict[str, Any]:
    """What the keeper reads: command, environment, probes, limits.

    Args:
        service: The InferenceService.
        root: Folder with the image's files.
        ports: `http`, `grpc` and `metrics`, free on this machine.
        triton: The executable that stands for the image's entry point.
        path: PATH for the container.
    """
    predictor = service["spec"]["predictor"]
    container = predictor["containers"][0]
    memory = container["resources"]["limits"].get("memory")
    return {
        "command": [str(triton), *local_arguments(container["args"], root=root, ports=ports)],
        "environment": {
            "PATH": path,
            **{variable["name"]: variable["value"] for variable in container.get("env", [])},
        },
        "ports": dict(ports),
        "probes": {
            kind: _probe(container[f"{kind}Probe"], container["args"], ports)
            for kind in ("startup", "readiness", "liveness")
        },
        "memory_bytes": int(amount(memory)) if memory else None,
        "grace_s": min(float(predictor["terminationGracePeriodSeconds"]), GRACE_MAX_S),
    }


def local_arguments(arguments: list[str], *, root: Path, ports: Mapping[str, int]) -> list[str]:
    """The container's arguments, as Triton takes them on this machine."""
    given = {argument.partition("=")[0] for argument in arguments}
    local = []
    for argument in [*arguments, *(f"{name}={value}" for name, value in _DEFAULTS.items() if name not in given)]:
        name, _, value = argument.partition("=")
        templates = ARGUMENTS.get(name)
        local += [argument] if templates is None else [t.format(**ports, root=root, value=value) for t in templates]
    return local


def _probe(probe: Manifest, arguments: list[str], ports: Mapping[str, int]) -> dict[str, Any]:
    given = dict(re.findall(r"^--(http|metrics)-port=(\d+)$", "\n".join(arguments), re.MULTILINE))
    kinds = {int(given.get("http", 8000)): "http", int(given.get("metrics", 8002)): "metrics"}
    return {
        "path": probe["httpGet"]["path"],
        "port": ports[kinds.get(probe["httpGet"]["port"], "http")],
        "period_s": probe["periodSeconds"],
        "timeout_s": probe.get("timeoutSeconds", 1),
        "failures": probe["failureThreshold"],
    }
