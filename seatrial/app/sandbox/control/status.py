"""The status of an InferenceService, one observable stage at a time, as KServe 0.20 in Standard mode walks it.

    (none) → IngressReady, PredictorReady False → PredictorReady True → Ready True, model InProgress → UpToDate

Source: pkg/apis/serving/v1beta1/inference_service_status.go (PropagateRawStatus, PropagateModelStatus): copies counts
ready pods and leaves zero out; a failure shows only while the first pod's container has ended in error or backs off;
a pod that waits for its image or a node shows nothing but PredictorReady False.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from seatrial.app.sandbox.control.kinds import Manifest

_UNAVAILABLE: Final = ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")


@dataclass(frozen=True, kw_only=True)
class Pod:
    """How one replica is."""

    name: str
    ready: bool = False
    http_port: int = 0
    waiting: str = ""
    """Why no container runs: `Unschedulable`, `ErrImagePull`, `ContainerCreating`, `CrashLoopBackOff`; or empty."""
    exit_code: int | None = None
    """Of the container's last end; None when it has not ended."""
    exit_reason: str = ""
    exit_time: str = ""


def next_status(service: Manifest, pods: list[Pod], now: str) -> Manifest:
    """The status that follows the one in `service`, at most one stage further.

    Args:
        service: The InferenceService with its present status.
        pods: Its replicas, in order.
        now: RFC 3339, for conditions that change.
    """
    old: Manifest = service.get("status") or {}
    was = {condition["type"]: condition["status"] for condition in old.get("conditions", [])}
    available = any(pod.ready for pod in pods)  # KServe says Ready with one of two replicas
    cluster_local = service["metadata"].get("labels", {}).get("networking.kserve.io/visibility") == "cluster-local"
    predictor = available and bool(was)
    ready = predictor and was.get("PredictorReady") == "True"
    ingress = ready or cluster_local
    conditions = {
        "IngressReady": (ingress, "Predictor ingress not created", ""),
        "PredictorReady": (predictor, *_UNAVAILABLE),
        "Ready": (ready, *(_UNAVAILABLE if not predictor else ("Predictor ingress not created", ""))),
    }
    status: Manifest = {
        "observedGeneration": service["metadata"]["generation"],
        "deploymentMode": "Standard",
        "conditions": [_condition(old, kind, *value, now=now) for kind, value in conditions.items()],
        "modelStatus": _model_status(old, pods, ready=ready, was_ready=was.get("Ready") == "True"),
        "components": {"predictor": {}},
    }
    if ready:
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        url = f"http://{name}-predictor.{namespace}.svc.cluster.local"
        status |= {"url": url, "address": {"url": url}, "components": {"predictor": {"url": url}}}
    return status


def _condition(old: Manifest, kind: str, holds: bool, reason: str, message: str, *, now: str) -> Manifest:  # noqa: FBT001
    new: dict[str, Any] = {"type": kind, "status": "True" if holds else "False"}
    if not holds:
        new |= {"reason": reason, **({"message": message} if message else {})}
    before = next((c for c in old.get("conditions", []) if c["type"] == kind), None)
    same = before is not None and before["status"] == new["status"]
    return {**new, "lastTransitionTime": before["lastTransitionTime"] if same and before else now}


def _model_status(old: Manifest, pods: list[Pod], *, ready: bool, was_ready: bool) -> Manifest:
    before = old.get("modelStatus", {})
    active = before.get("states", {}).get("activeModelState", "")
    failure = before.get("lastFailureInfo")
    copies = sum(pod.ready for pod in pods)
    first = pods[0] if pods else None
    if ready and was_ready:
        target, transition, active = "Loaded", "UpToDate", "Loaded"
    elif not ready and first is not None and _has_failed(first):
        target, transition, failure = "FailedToLoad", "BlockedByFailedLoad", _failure(first)
    else:
        target, transition = "Pending", "InProgress"
    return {
        "transitionStatus": transition,
        "states": {"activeModelState": active, "targetModelState": target},
        "copies": {"failedCopies": 0, **({"totalCopies": copies} if copies else {})},
        **({"lastFailureInfo": failure} if failure else {}),  # it stays after the next pod is fine
    }


def _has_failed(pod: Pod) -> bool:
    return pod.waiting == "CrashLoopBackOff" or (pod.waiting != "" and pod.exit_reason == "Error")


def _failure(pod: Pod) -> Manifest:
    """KServe knows one reason for a container that ended; what ended it is told by exit code and message."""
    return {
        "reason": "ModelLoadFailed",
        "location": pod.name,
        "message": pod.exit_reason,
        "exitCode": pod.exit_code or 0,
        "time": pod.exit_time,
    }
