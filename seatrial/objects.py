"""The Kubernetes objects that we make: InferenceService and HTTPRoute, with exactly the fields that we render.

Closed models, so that one definition both builds them and refuses what we would never render: deploy_model and
`route` build with it, the sandbox's control API refuses with it.
Source: serving.kserve.io/v1beta1 of KServe 0.20, gateway.networking.k8s.io/v1 of Gateway API 1.5.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ARM_HEADER: Final = "x-seatrial-arm"
"""Request header that reaches the canary at weight 0; such requests are not counted as traffic."""

GATEWAY: Final = "seatrial"
"""The Gateway that every route hangs on; it lies in the namespace of the services."""

Port = Annotated[int, Field(ge=1, le=65_535)]
DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|Ki|Mi|Gi)?$")]


class KubernetesModel(BaseModel):
    """Frozen, closed, camelCase on the wire and snake_case here."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=lambda name: "".join(
            part if index == 0 else part[:1].upper() + part[1:] for index, part in enumerate(name.split("_"))
        ),
    )

    def manifest(self) -> dict[str, Any]:
        """The object as the API takes it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Metadata(KubernetesModel):
    """Name, labels, annotations; the server's own fields are taken and given back."""

    name: DnsLabel
    namespace: DnsLabel
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    resource_version: str | None = None
    uid: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None


class HttpGet(KubernetesModel):
    """An HTTP probe."""

    path: str
    port: Port


class Probe(KubernetesModel):
    """How the kubelet asks a container."""

    http_get: HttpGet
    period_seconds: int = Field(ge=1)
    failure_threshold: int = Field(ge=1)
    timeout_seconds: int = Field(default=1, ge=1)


class ContainerPort(KubernetesModel):
    """A port that the container listens on."""

    container_port: Port
    protocol: Literal["TCP"] = "TCP"


class Variable(KubernetesModel):
    """An environment variable with a value."""

    name: str
    value: str


class ResourceAmounts(KubernetesModel):
    """Requests and limits."""

    requests: dict[str, Quantity]
    limits: dict[str, Quantity]


class Capabilities(KubernetesModel):
    """Linux capabilities."""

    drop: tuple[Literal["ALL"], ...] = ("ALL",)


class SeccompProfile(KubernetesModel):
    """Seccomp."""

    type: Literal["RuntimeDefault"] = "RuntimeDefault"


class SecurityContext(KubernetesModel):
    """What Pod Security `restricted` asks for, and a read-only root."""

    run_as_non_root: Literal[True] = True
    run_as_user: int = Field(default=10001, ge=1)
    allow_privilege_escalation: Literal[False] = False
    read_only_root_filesystem: Literal[True] = True
    capabilities: Capabilities = Capabilities()
    seccomp_profile: SeccompProfile = SeccompProfile()


class SleepAction(KubernetesModel):
    """Sleep before SIGTERM; needs no shell in the image. Source: Kubernetes 1.30, PodLifecycleSleepAction."""

    seconds: int = Field(ge=1)


class PreStop(KubernetesModel):
    """What happens before SIGTERM."""

    sleep: SleepAction


class Lifecycle(KubernetesModel):
    """Hooks of a container."""

    pre_stop: PreStop


class VolumeMount(KubernetesModel):
    """Where a volume appears."""

    name: str
    mount_path: str


class Container(KubernetesModel):
    """The one container of a predictor."""

    name: Literal["kserve-container"] = "kserve-container"
    image: Annotated[str, StringConstraints(pattern=r"^[^\s@]+@sha256:[0-9a-f]{64}$")]
    args: tuple[str, ...]
    ports: tuple[ContainerPort, ...]
    env: tuple[Variable, ...] = ()
    resources: ResourceAmounts
    startup_probe: Probe
    readiness_probe: Probe
    liveness_probe: Probe
    lifecycle: Lifecycle
    security_context: SecurityContext = SecurityContext()
    volume_mounts: tuple[VolumeMount, ...] = ()


class EmptyDir(KubernetesModel):
    """Scratch space."""

    medium: Literal["", "Memory"] = ""
    size_limit: Quantity | None = None


class Volume(KubernetesModel):
    """An emptyDir, the only kind that serving needs."""

    name: str
    empty_dir: EmptyDir


class Predictor(KubernetesModel):
    """KServe's predictor with a container of our own."""

    min_replicas: int = Field(ge=1)
    service_account_name: str
    priority_class_name: str | None = Field(default=None, description="None: whatever the cluster's default is")
    automount_service_account_token: Literal[False] = False
    termination_grace_period_seconds: int = Field(ge=1)
    node_selector: dict[str, str] = Field(default_factory=dict)
    containers: tuple[Container] = Field(description="exactly one")
    volumes: tuple[Volume, ...] = ()


class InferenceServiceSpec(KubernetesModel):
    """One predictor; no canary, no transformer, no explainer."""

    predictor: Predictor


class InferenceService(KubernetesModel):
    """One immutable version of a model."""

    api_version: Literal["serving.kserve.io/v1beta1"] = "serving.kserve.io/v1beta1"
    kind: Literal["InferenceService"] = "InferenceService"
    metadata: Metadata
    spec: InferenceServiceSpec
    status: dict[str, Any] | None = Field(default=None, description="the controller's own; we only read it")


class ParentReference(KubernetesModel):
    """The Gateway that a route hangs on."""

    name: str
    namespace: str | None = None


class PathMatch(KubernetesModel):
    """A path."""

    type: Literal["PathPrefix"] = "PathPrefix"
    value: str = Field(pattern=r"^/")


class HeaderMatch(KubernetesModel):
    """A header."""

    type: Literal["Exact"] = "Exact"
    name: str
    value: str


class RouteMatch(KubernetesModel):
    """Path, and header where the canary is asked for."""

    path: PathMatch
    headers: tuple[HeaderMatch, ...] = ()


class BackendReference(KubernetesModel):
    """A predictor's Service and its weight."""

    name: DnsLabel
    port: Port = 80
    weight: int = Field(default=1, ge=0, le=1_000_000)


class RouteRule(KubernetesModel):
    """Matches and where they go."""

    matches: tuple[RouteMatch, ...] = Field(min_length=1)
    backend_refs: tuple[BackendReference, ...] = Field(min_length=1)


class HTTPRouteSpec(KubernetesModel):
    """The header rule first (if there is a candidate), the weighted rule last."""

    parent_refs: tuple[ParentReference, ...] = Field(min_length=1)
    rules: tuple[RouteRule, ...] = Field(min_length=1, max_length=16)


class HTTPRoute(KubernetesModel):
    """Who serves a model: the truth."""

    api_version: Literal["gateway.networking.k8s.io/v1"] = "gateway.networking.k8s.io/v1"
    kind: Literal["HTTPRoute"] = "HTTPRoute"
    metadata: Metadata
    spec: HTTPRouteSpec
    status: dict[str, Any] | None = Field(default=None, description="the gateway's own; no proof of anything")
