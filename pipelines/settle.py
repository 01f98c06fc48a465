"""The janitor: what runs left that ended without their exit handler, of every model, once a minute.

The whole workflow stands in the CronWorkflow. One that refers to a WorkflowTemplate stays dead when both are applied at
once and the controller meets it first. Source: seen with Argo 4.0.5, "WorkflowTemplate Informer cannot find
WorkflowTemplate", and no further try in ten minutes.
"""

from __future__ import annotations

from typing import Final

from hera.workflows import CronWorkflow
from hera.workflows import models as m

from pipelines._build import template
from pipelines._contracts import janitor

NAME: Final = "settle"
EVERY_MINUTE: Final = "* * * * *"

SUMMARY: Final = """\
Puts right what a release left whose exit handler could not run: terminated, or deleted. Its candidate is taken out of
the route, its service goes, its outcome is written down. A release that runs is never touched."""


def settle() -> CronWorkflow:
    """The CronWorkflow `settle`; one that takes longer than a minute is not overtaken."""
    step = janitor()
    with CronWorkflow(
        name=NAME,
        annotations={
            "workflows.argoproj.io/title": "Settle what releases left",
            "workflows.argoproj.io/description": SUMMARY,
        },
        schedules=[EVERY_MINUTE],
        concurrency_policy="Forbid",
        starting_deadline_seconds=30,
        successful_jobs_history_limit=1,
        failed_jobs_history_limit=3,
        entrypoint=step.name,
        active_deadline_seconds=2 * step.step.deadline_s,
        # Once a minute: nothing is kept of a run that went well but what it wrote into ledger and outcomes.
        archive_logs=False,
        pod_gc=m.PodGC(strategy="OnPodSuccess"),
        ttl_strategy=m.TTLStrategy(seconds_after_success=300, seconds_after_failure=86_400),
    ) as whole:
        template(step)
    return whole
