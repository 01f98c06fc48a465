"""Step contract → Argo template. A function returns a fresh object; nothing is built at import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hera.workflows import Artifact, Container, NoneArchiveStrategy, Parameter, RetryStrategy, Task
from hera.workflows import models as m

from pipelines._contracts import Contracted, default_text, is_folder
from steps._contract import Need

IO: Final = "/io"
USER: Final = 10001
EXECUTOR: Final = "seatrial-executor"
"""ServiceAccount of Argo's own containers where the step itself gets no token."""
PRIORITY_CLASS: Final = "seatrial-training"
"""Of a workflow's pods; what serves comes before them."""
ROLL_OUT_PRIORITY_CLASS: Final = "seatrial-roll-out"
"""Of the steps that change who serves: they neither wait for another model's training nor give way to it."""
STEP_LABEL: Final = "seatrial.dev/step"
"""On every pod of a workflow: by it a NetworkPolicy knows the steps apart."""

SOURCES: Final[dict[Need, tuple[m.EnvFromSource, ...]]] = {
    "store": (
        m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-store")),
        m.EnvFromSource(secret_ref=m.SecretEnvSource(name="seatrial-store-credentials")),
    ),
    "cluster": (m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-cluster")),),
    "gateway": (m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-gateway")),),
    "tracking": (m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-tracking")),),
    "signing": (m.EnvFromSource(secret_ref=m.SecretEnvSource(name="seatrial-signing-key")),),
    "trust": (m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-trusted-keys")),),
    "registry": (m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-registry")),),
    "source": (
        m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-source")),
        m.EnvFromSource(secret_ref=m.SecretEnvSource(name="seatrial-source-credentials", optional=True)),
    ),
    "triton": (m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-triton")),),
}
"""What a step may touch → the ConfigMaps and Secrets whose keys become its environment."""

RETRY_WHEN: Final = (
    "!(lastRetry.message matches 'specified deadline') && "
    "(lastRetry.status == 'Error' || lastRetry.exitCode in ['75', '137', '143'] || "
    "lastRetry.message matches '(?i)evict|preempt|node ?shutdown')"
)
"""Node errors, exit 75 (something is away), kills, evictions and preemptions; a passed deadline would pass again."""

POD_SPEC_PATCH: Final = "pod-spec-patch"
"""Extra input of a template whose pod the spec may shape."""


def template(contracted: Contracted, *, shaped_by_spec: bool = False) -> Container:
    """The template of one step.

    Args:
        contracted: The step.
        shaped_by_spec: Whether it takes `POD_SPEC_PATCH` and applies it to its pod.
    """
    step, token = contracted.step, contracted.needs("cluster")
    return Container(
        name=contracted.name,
        labels={STEP_LABEL: contracted.name},
        annotations={"workflows.argoproj.io/description": step.summary},
        image=f"seatrial/{contracted.image}",
        command=["python3", "-m", f"steps.{contracted.package}"],
        args=_arguments(contracted),
        inputs=[*_inputs(contracted), *([Parameter(name=POD_SPEC_PATCH)] if shaped_by_spec else [])],
        outputs=[*_outputs(contracted)],
        env=[m.EnvVar(name="SEATRIAL_IO", value=IO)],
        env_from=[source for need in step.needs for source in SOURCES[need]],
        resources=resources(cpu=step.cpu, memory=step.memory),
        active_deadline_seconds=step.deadline_s,
        retry_strategy=retry(step.retries),
        pod_spec_patch=reference("inputs", POD_SPEC_PATCH) if shaped_by_spec else None,
        volumes=[emptied("io"), emptied("tmp")],
        volume_mounts=[m.VolumeMount(name="io", mount_path=IO), m.VolumeMount(name="tmp", mount_path="/tmp")],  # noqa: S108 - the container's own
        pod_security_context=m.PodSecurityContext(
            run_as_non_root=True,
            run_as_user=USER,
            run_as_group=USER,
            fs_group=USER,
            seccomp_profile=m.SeccompProfile(type="RuntimeDefault"),
        ),
        security_context=m.SecurityContext(
            allow_privilege_escalation=False,
            read_only_root_filesystem=True,
            capabilities=m.Capabilities(drop=["ALL"]),
        ),
        service_account_name=f"seatrial-{contracted.name}",
        automount_service_account_token=token,
        priority_class_name=ROLL_OUT_PRIORITY_CLASS if contracted.needs("gateway") else None,
        executor=None if token else executor(),
    )


def _arguments(contracted: Contracted) -> list[str]:
    given = [text for name in contracted.inputs.parameters() for text in (f"--{name}", reference("inputs", name))]
    return [contracted.mode, *given] if contracted.mode else given


def executor() -> m.ExecutorConfig:
    """Where the step gets no token, only Argo's own containers talk to the API server."""
    return m.ExecutorConfig(service_account_name=EXECUTOR)


def resources(*, cpu: str, memory: str, **more: str) -> m.ResourceRequirements:
    """Requests equal limits: a step is never squeezed by its neighbours."""
    amounts = {name: m.Quantity(root=value) for name, value in {"cpu": cpu, "memory": memory, **more}.items()}
    return m.ResourceRequirements(requests=amounts, limits=amounts)


def retry(limit: int) -> RetryStrategy:
    """Up to `limit` further attempts, 10 s, 20 s, 40 s … apart, for what another attempt may cure."""
    return RetryStrategy(
        limit=str(limit),
        retry_policy="Always",
        expression=RETRY_WHEN,
        backoff=m.Backoff(duration="10s", factor=m.IntOrString(root="2"), cap="5m"),
    )


def emptied(name: str) -> m.Volume:
    """A volume that lives as long as the pod."""
    return m.Volume(name=name, empty_dir=m.EmptyDirVolumeSource())


def reference(kind: str, name: str) -> str:
    """`{{inputs.parameters.x}}` and `{{workflow.parameters.X}}`."""
    return f"{{{{{kind}.parameters.{name}}}}}"


def said(task: str, parameter: str) -> str:
    """A task's output parameter."""
    return f"{{{{tasks.{task}.outputs.parameters.{parameter}}}}}"


def is_(text: str, wanted: str) -> str:
    """A gate: both sides quoted, so that an empty text is compared and not a syntax error."""
    return f"'{text}' == '{wanted}'"


def task(
    of: str,
    *,
    values: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    after: str | None = None,
    when: str | None = None,
) -> Task:
    """A task that bears its template's name.

    Args:
        of: The template.
        values: Parameter → text.
        files: Artifact → the task that gives it under the same name, or `task/artifact`.
        after: The task that must have succeeded; a bare dependency would also be met by one that was skipped.
        when: The gate.
    """
    return Task(
        name=of,
        template=of,
        arguments=[*parameters(values or {}), *(_file(name, giver) for name, giver in (files or {}).items())] or None,
        depends=f"{after}.Succeeded" if after else None,
        when=when,
    )


def parameters(values: Mapping[str, str]) -> Iterable[Parameter]:
    """Arguments from name → text."""
    return [Parameter(name=name, value=value) for name, value in values.items()]


def _file(name: str, giver: str) -> Artifact:
    of, _, theirs = giver.partition("/")
    return Artifact(name=name, from_=f"{{{{tasks.{of}.outputs.artifacts.{theirs or name}}}}}")


def _inputs(contracted: Contracted) -> Iterable[Parameter | Artifact]:
    for name, field in contracted.inputs.parameters().items():
        yield Parameter(name=name, description=field.description)
    for name, field in contracted.inputs.artifacts().items():
        # Stated on both sides: Argo unpacks what looks like a tarball unless the input says otherwise.
        archive = None if is_folder(field) else NoneArchiveStrategy()
        yield Artifact(name=name, path=f"{IO}/in/{name}", archive=archive)


def _outputs(contracted: Contracted) -> Iterable[Parameter | Artifact]:
    for name, field in contracted.outputs.parameters().items():
        place = m.ValueFrom(path=f"{IO}/out/params/{name}", default=default_text(field))
        yield Parameter(name=name, value_from=place, description=field.description)
    for name, field in contracted.outputs.artifacts().items():
        archive = None if is_folder(field) else NoneArchiveStrategy()
        yield Artifact(name=name, path=f"{IO}/out/{name}", archive=archive)
