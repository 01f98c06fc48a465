"""One model from its source to promoted.

release = build-candidate ──pass──▶ roll-out                   however it ends: settle-release
build-candidate: resolve-release ─new─▶ validate-data ─pass─▶ train-model ─▶ evaluate-model ─pass─▶ package-model
                 ─pass─▶ build-image
roll-out (one at a time per model): deploy-model ─pass─▶ run-canary      also started alone: `--entrypoint roll-out`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hera.workflows import DAG, Parameter, WorkflowTemplate
from hera.workflows import models as m

from pipelines import _kaniko
from pipelines._build import POD_SPEC_PATCH, PRIORITY_CLASS, is_, reference, said, task, template
from pipelines._contracts import contracts

LONGEST_S: Final = 259_200
"""Three days: a day of training, a day of canary, and waiting for the lock."""

MODEL_NAME: Final = reference("workflow", "MODEL_NAME")
REASON: Final = reference("workflow", "REASON")
RELEASE_ID: Final = "{{workflow.uid}}"

SUMMARY: Final = """\
Carries one model from its source to production: data, training, evaluation, packaging, image, deployment, canary.
Each gate decides **pass**, **fail** or **inconclusive**; only pass goes on. However the run ends, `settle-release`
leaves traffic on a version that was promoted or is watched; it is red unless promoted or unchanged."""


def release(models: Sequence[str]) -> WorkflowTemplate:
    """The WorkflowTemplate `release`.

    Args:
        models: What MODEL_NAME may be, sorted; the first is what the form shows.
    """
    with WorkflowTemplate(
        name="release",
        annotations={
            "workflows.argoproj.io/title": "Release a model",
            "workflows.argoproj.io/description": SUMMARY,
        },
        entrypoint="release",
        arguments=_arguments(models),
        hooks={"exit": m.LifecycleHook(template="settle-release", arguments=_settle_arguments())},
        active_deadline_seconds=LONGEST_S,
        archive_logs=True,
        pod_priority_class_name=PRIORITY_CLASS,
        pod_gc=m.PodGC(strategy="OnPodCompletion", delete_delay_duration="600s"),
        ttl_strategy=m.TTLStrategy(seconds_after_success=7 * 86_400, seconds_after_failure=30 * 86_400),
    ) as whole:
        _release()
        _build_candidate()
        _roll_out()
        for contracted in contracts():
            template(contracted, shaped_by_spec=contracted.name == "train-model")
        _kaniko.build_image()
    return whole


def _arguments(models: Sequence[str]) -> list[Parameter]:
    return [
        _choice(models),
        Parameter(
            name="REVISION",
            value="",
            description="Commit, branch or tag of the model's source. Empty: the source as it is.",
        ),
        Parameter(
            name="DATA_URI",
            value="",
            description="One row per question: `s3://…`, or `file://…` where steps see it. Empty: only for `roll-out`.",
        ),
        Parameter(name="REASON", value="", description="Why, in a sentence. It goes into the ledger."),
    ]


def _choice(models: Sequence[str]) -> Parameter:
    text = "The model to release: a folder in `models/`."
    if not models:  # Argo refuses an empty enum
        return Parameter(name="MODEL_NAME", description=text)
    return Parameter(name="MODEL_NAME", value=models[0], enum=list(models), description=text)


def _settle_arguments() -> m.Arguments:
    values = {
        "model-name": MODEL_NAME,
        "release-id": RELEASE_ID,
        "workflow-name": "{{workflow.name}}",
        "workflow-status": "{{workflow.status}}",
        "reason": REASON,
    }
    return m.Arguments(parameters=[m.Parameter(name=name, value=value) for name, value in values.items()])


def _release() -> None:
    with DAG(name="release"):
        task("build-candidate")
        task(
            "roll-out",
            values={
                "version": said("build-candidate", "version"),
                "image": f"{said('build-candidate', 'repository')}@{said('build-candidate', 'digest')}",
                "bundle-digest": said("build-candidate", "bundle-digest"),
            },
            after="build-candidate",
            when=is_(said("build-candidate", "decision"), "pass"),
        )


def _build_candidate() -> None:
    outputs = {
        # 0 and empty are what no version, no image and no bundle look like.
        "decision": ("package-model", "none"),
        "version": ("resolve-release", "0"),
        "bundle-digest": ("package-model", ""),
        "repository": ("package-model", ""),
        "digest": ("build-image", ""),
    }
    with DAG(
        name="build-candidate",
        outputs=[
            Parameter(name=name, value_from=m.ValueFrom(parameter=said(giver, name), default=default))
            for name, (giver, default) in outputs.items()
        ],
    ):
        _gates_before_deploy()


def _gates_before_deploy() -> None:
    task(
        "resolve-release",
        values={
            "model-name": MODEL_NAME,
            "revision": reference("workflow", "REVISION"),
            "data-uri": reference("workflow", "DATA_URI"),
            "reason": REASON,
            "release-id": RELEASE_ID,
        },
    )
    resolved = {"release": "resolve-release", "source": "resolve-release"}
    champion = {"champion": "resolve-release"}
    task(
        "validate-data",
        files={**resolved, "data": "resolve-release"},
        after="resolve-release",
        when=is_(said("resolve-release", "outcome"), "new"),
    )
    task(
        "train-model",
        values={POD_SPEC_PATCH: said("resolve-release", POD_SPEC_PATCH)},
        files={**resolved, "train-rows": "validate-data"},
        after="validate-data",
        when=is_(said("validate-data", "decision"), "pass"),
    )
    trained = {"model": "train-model", "holdout-rows": "validate-data"}
    task(
        "evaluate-model",
        files={**resolved, **trained, "answers": "train-model", **champion},
        after="train-model",
    )
    task(
        "package-model",
        files={
            **resolved,
            **trained,
            **champion,
            "profile": "validate-data",
            "data-verdict": "validate-data/verdict",
            "data-report": "validate-data/report",
            "evaluation-verdict": "evaluate-model/verdict",
            "evaluation-report": "evaluate-model/report",
            "model-card": "evaluate-model",
            "training-record": "train-model/record",
        },
        after="evaluate-model",
        when=is_(said("evaluate-model", "decision"), "pass"),
    )
    task(
        _kaniko.NAME,
        values={"repository": said("package-model", "repository"), "tag": said("package-model", "tag")},
        files={"context": "package-model"},
        after="package-model",
        when=is_(said("package-model", "decision"), "pass"),
    )


def _roll_out() -> None:
    owned = {"model-name": MODEL_NAME, "version": reference("inputs", "version"), "release-id": RELEASE_ID}
    bundle = {"bundle-digest": reference("inputs", "bundle-digest"), "reason": REASON}
    with DAG(
        name="roll-out",
        inputs=list(parameters_of("version", "image", "bundle-digest")),
        synchronization=m.Synchronization(mutexes=[m.Mutex(name=f"roll-out-{MODEL_NAME}")]),
    ):
        task("deploy-model", values={**owned, "image": reference("inputs", "image"), **bundle})
        task(
            "run-canary",
            values={**owned, **bundle},
            after="deploy-model",
            when=is_(said("deploy-model", "decision"), "pass"),
        )


def parameters_of(*names: str) -> list[Parameter]:
    """Inputs that must be given: by the task, or by the workflow's arguments where a template is started alone."""
    return [Parameter(name=name) for name in names]
