"""A rendered WorkflowTemplate, closed: exactly the fields that pipelines/ renders and that mean something here.

Any other field is refused by its path. Source: argoproj.io/v1alpha1 of Argo Workflows 4.0.5.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator

from seatrial.app.runner import meaningless
from seatrial.errors import InvalidInput, shortened
from seatrial.objects import KubernetesModel

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][-a-zA-Z0-9]*$", max_length=128)]
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def seconds(text: object) -> float:
    """Argo's durations: `10s`, `5m`, `1h`; a bare number is seconds."""
    match = _DURATION.fullmatch(str(text))
    if match is None:
        raise ValueError(f"a duration is like 10s, 5m or 1h; got {shortened(repr(text))}")
    return float(match.group(1)) * _UNIT_S[match.group(2) or ""]


Duration = Annotated[float, BeforeValidator(seconds)]
Count = Annotated[int, BeforeValidator(int), Field(ge=0)]


class ValueFrom(KubernetesModel):
    """Where an output parameter's value comes from: a file of a container, or a task of a DAG."""

    path: str | None = None
    parameter: str | None = None
    default: str | None = None

    @model_validator(mode="after")
    def _one(self) -> ValueFrom:
        if (self.path is None) == (self.parameter is None):
            raise ValueError("exactly one of path and parameter")
        return self


class Argument(KubernetesModel):
    """A parameter's value, given."""

    name: str
    value: str


class Asked(KubernetesModel):
    """A parameter that must be given, unless it has a value."""

    name: str
    value: str | None = None


class OutputParameter(KubernetesModel):
    """A small output."""

    name: str
    value_from: ValueFrom


class ArtifactArgument(KubernetesModel):
    """A file, given: `{{tasks.x.outputs.artifacts.y}}`."""

    name: str
    from_: str = Field(alias="from")


class ArtifactPlace(KubernetesModel):
    """Where a file lies in the container."""

    name: str
    path: str


class Arguments(KubernetesModel):
    """What a task gives to its template."""

    parameters: tuple[Argument, ...] = ()
    artifacts: tuple[ArtifactArgument, ...] = ()


class Submitted(KubernetesModel):
    """The workflow's own parameters."""

    parameters: tuple[Asked, ...] = ()


class Inputs(KubernetesModel):
    """What a template takes."""

    parameters: tuple[Asked, ...] = ()
    artifacts: tuple[ArtifactPlace, ...] = ()


class Outputs(KubernetesModel):
    """What a template gives."""

    parameters: tuple[OutputParameter, ...] = ()
    artifacts: tuple[ArtifactPlace, ...] = ()


class TemplateRef(KubernetesModel):
    """A template of another WorkflowTemplate."""

    name: Name
    template: Name


class DagTask(KubernetesModel):
    """A node of a DAG; `link` turns each templateRef into a template's name."""

    name: Name
    template: Name = ""
    template_ref: TemplateRef | None = None
    arguments: Arguments = Arguments()
    depends: str | None = None
    when: str | None = None
    with_param: str | None = None

    @model_validator(mode="after")
    def _one(self) -> DagTask:
        if (not self.template) == (self.template_ref is None):
            raise ValueError("exactly one of template and templateRef")
        return self


class Dag(KubernetesModel):
    """Tasks and what each waits for."""

    tasks: tuple[DagTask, ...] = Field(min_length=1)


class Variable(KubernetesModel):
    """An environment variable with a value."""

    name: str
    value: str


class SourceRef(KubernetesModel):
    """A ConfigMap or a Secret."""

    name: str
    optional: bool = False


class EnvironmentSource(KubernetesModel):
    """All keys of a ConfigMap or a Secret as variables."""

    config_map_ref: SourceRef | None = None
    secret_ref: SourceRef | None = None

    @model_validator(mode="after")
    def _one(self) -> EnvironmentSource:
        if (self.config_map_ref is None) == (self.secret_ref is None):
            raise ValueError("exactly one of configMapRef and secretRef")
        return self

    @property
    def source(self) -> SourceRef:
        """Which it is."""
        source = self.config_map_ref or self.secret_ref
        assert source is not None  # noqa: S101 - the validator above
        return source


class VolumeMount(KubernetesModel):
    """Where a volume appears."""

    name: str
    mount_path: str


class Container(KubernetesModel):
    """The one container of a step."""

    image: str
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    env_from: tuple[EnvironmentSource, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class EmptyDir(KubernetesModel):
    """A folder that lives as long as the pod."""


class Volume(KubernetesModel):
    """A volume: an empty folder; anything else in it is in the table of what means nothing here."""

    name: str
    empty_dir: EmptyDir | None = None


class Backoff(KubernetesModel):
    """Time between attempts: duration, duration × factor, duration × factor² … at most cap."""

    duration: Duration
    factor: Count = 1
    cap: Duration | None = None


class RetryStrategy(KubernetesModel):
    """When a failed attempt gets another."""

    limit: Count
    retry_policy: Literal["Always"]
    expression: str
    backoff: Backoff | None = None


class Mutex(KubernetesModel):
    """A lock by name."""

    name: str


class Synchronization(KubernetesModel):
    """Exactly one lock."""

    mutexes: tuple[Mutex, ...] = Field(min_length=1, max_length=1)


class Template(KubernetesModel):
    """A DAG or a container."""

    name: Name
    inputs: Inputs = Inputs()
    outputs: Outputs = Outputs()
    dag: Dag | None = None
    container: Container | None = None
    volumes: tuple[Volume, ...] = ()
    active_deadline_seconds: int | None = Field(default=None, ge=1)
    retry_strategy: RetryStrategy | None = None
    synchronization: Synchronization | None = None
    pod_spec_patch: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Template:
        if (self.dag is None) == (self.container is None):
            raise ValueError("exactly one of dag and container")
        if self.dag is not None and (self.retry_strategy or self.active_deadline_seconds or self.volumes):
            raise ValueError("a dag has no retryStrategy, activeDeadlineSeconds or volumes of its own")
        if self.dag is None and self.synchronization is not None:
            raise ValueError("synchronization stands on a dag only")
        kinds = {"parameter": self.dag is None, "path": self.dag is not None}
        wrong = [
            o.name for o in self.outputs.parameters for k, bad in kinds.items() if bad and getattr(o.value_from, k)
        ]
        if wrong or (self.dag is not None and self.outputs.artifacts):
            raise ValueError(f"a container's outputs come from a path, a dag's parameters from a task; got {wrong}")
        return self

    @property
    def lock(self) -> str | None:
        """The name of its mutex, references and all."""
        return self.synchronization.mutexes[0].name if self.synchronization else None


class ExitHook(KubernetesModel):
    """What runs however the workflow ends."""

    template: Name
    arguments: Arguments = Arguments()


class Hooks(KubernetesModel):
    """Only the exit hook."""

    exit: ExitHook | None = None


class Spec(KubernetesModel):
    """The workflow."""

    entrypoint: Name
    arguments: Submitted = Submitted()
    hooks: Hooks = Hooks()
    templates: tuple[Template, ...] = Field(min_length=1)
    active_deadline_seconds: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _names_differ(self) -> Spec:
        names = [template.name for template in self.templates]
        if len(set(names)) != len(names):
            raise ValueError(f"two templates have one name: {sorted({n for n in names if names.count(n) > 1})}")
        return self


class Metadata(KubernetesModel):
    """Name and labels."""

    name: Name
    namespace: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)


class Manifest(KubernetesModel):
    """A WorkflowTemplate."""

    api_version: Literal["argoproj.io/v1alpha1"]
    kind: Literal["WorkflowTemplate"]
    metadata: Metadata
    spec: Spec

    def template(self, name: str) -> Template:
        """The template of that name; `check` has seen that it is there."""
        return next(template for template in self.spec.templates if template.name == name)


def read(document: dict[str, Any]) -> Manifest:
    """The manifest in a rendered document.

    Raises:
        InvalidInput: It holds a field that is not known here, or misses one; each is named by its path.
    """
    try:
        return Manifest.model_validate(meaningless.without(document))
    except ValidationError as error:
        faults = "; ".join(f"{_path(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False))
        raise InvalidInput(f"the runner does not know this workflow template: {faults}") from error


def _path(parts: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")
