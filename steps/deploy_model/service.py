"""The InferenceService of one version: made once, never changed, then only deleted."""

from __future__ import annotations

import math
from typing import Final

from pydantic import ValidationError

from seatrial.errors import InvalidInput, shortened
from seatrial.names import kebab, service_name
from seatrial.objects import (
    Container,
    ContainerPort,
    EmptyDir,
    HttpGet,
    InferenceService,
    InferenceServiceSpec,
    Lifecycle,
    Metadata,
    Predictor,
    PreStop,
    Probe,
    ResourceAmounts,
    SleepAction,
    Variable,
    Volume,
    VolumeMount,
)
from seatrial.ports import Manifest
from seatrial.spec import Resources, Spec

HTTP, GRPC, METRICS = 8080, 9000, 8002
SERVICE_ACCOUNT: Final = "seatrial-serving"
PRIORITY_CLASS: Final = "seatrial-serving"
"""Above what trains: where room is short, training makes place."""
EXIT_TIMEOUT_S: Final = 5
"""Seconds that Triton gives requests under way."""
PRE_STOP_S: Final = 5
"""Longer than the slowest gateway takes to follow. Source: Traefik, providersThrottleDuration 2 s."""
LIVENESS_S, LIVENESS_FAILURES = 5, 6
SHARED_MEMORY: Final = "256Mi"
"""Each stub of Triton's python backend takes 1 MiB and grows with its tensors. Source: triton server#5868."""

ANNOTATIONS: Final = {
    "serving.kserve.io/deploymentMode": "Standard",
    "serving.kserve.io/autoscalerClass": "none",
}
ARGUMENTS: Final = (
    "--model-repository=/models",
    "--model-control-mode=explicit",
    "--load-model=*",
    "--strict-readiness=true",
    f"--http-port={HTTP}",
    f"--grpc-port={GRPC}",
    f"--metrics-port={METRICS}",
    f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
)


def inference_service(spec: Spec, *, version: int, image: str, bundle: str, namespace: str, replicas: int) -> Manifest:
    """The object; the same arguments give the same one.

    Args:
        spec: The model's spec.
        version: Also Triton's version directory in the image.
        image: repository@sha256:….
        bundle: Digest of the bundle in the image, for people.
        namespace: Where it runs.
        replicas: How many pods.

    Raises:
        InvalidInput: The image is not named by digest, or a name gets too long.
    """
    try:
        return InferenceService(
            metadata=Metadata(
                name=service_name(spec.model, version, namespace),
                namespace=namespace,
                labels={
                    "seatrial.dev/model": kebab(spec.model),
                    "networking.kserve.io/visibility": "cluster-local",
                },
                annotations={**ANNOTATIONS, "seatrial.dev/bundle": bundle},
            ),
            spec=InferenceServiceSpec(predictor=_predictor(spec, version, image, replicas)),
        ).manifest()
    except ValidationError as error:
        raise InvalidInput(f"v{version} of {spec.model} cannot be deployed: {shortened(error)}") from error


def _predictor(spec: Spec, version: int, image: str, replicas: int) -> Predictor:
    return Predictor(
        min_replicas=replicas,
        service_account_name=SERVICE_ACCOUNT,
        priority_class_name=PRIORITY_CLASS,
        termination_grace_period_seconds=PRE_STOP_S + EXIT_TIMEOUT_S + 20,
        node_selector=spec.serving.resources.node_selector,
        containers=(_container(spec, version, image),),
        volumes=(
            Volume(name="shm", empty_dir=EmptyDir(medium="Memory", size_limit=SHARED_MEMORY)),
            Volume(name="tmp", empty_dir=EmptyDir(size_limit="256Mi")),
        ),
    )


def _container(spec: Spec, version: int, image: str) -> Container:
    ready = HttpGet(path=f"/v2/models/{spec.model}/versions/{version}/ready", port=HTTP)
    amounts = _amounts(spec.serving.resources)
    return Container(
        image=image,
        args=ARGUMENTS,
        ports=(ContainerPort(container_port=HTTP),),
        env=(Variable(name="PROTOCOL", value="v2"),),
        resources=ResourceAmounts(requests=amounts, limits=amounts),
        startup_probe=Probe(http_get=ready, period_seconds=1, failure_threshold=math.ceil(spec.serving.ready_within_s)),
        readiness_probe=Probe(http_get=ready, period_seconds=1, failure_threshold=2, timeout_seconds=2),
        liveness_probe=Probe(
            http_get=HttpGet(path="/v2/health/live", port=HTTP),
            period_seconds=LIVENESS_S,
            failure_threshold=LIVENESS_FAILURES,
            timeout_seconds=2,
        ),
        lifecycle=Lifecycle(pre_stop=PreStop(sleep=SleepAction(seconds=PRE_STOP_S))),
        volume_mounts=(
            VolumeMount(name="shm", mount_path="/dev/shm"),  # noqa: S108 - the pod's own
            VolumeMount(name="tmp", mount_path="/tmp"),  # noqa: S108 - the pod's own
        ),
    )


def _amounts(resources: Resources) -> dict[str, str]:
    gpus = {"nvidia.com/gpu": str(resources.gpus)} if resources.gpus else {}
    return {"cpu": resources.cpu, "memory": resources.memory, **gpus}
