"""The janitor: what runs left that ended without their exit handler, of every model, once a minute.

A WorkflowTemplate that anybody may start as well, and the CronWorkflow that starts it.
"""

from __future__ import annotations

from typing import Final

from hera.workflows import CronWorkflow, WorkflowTemplate
from hera.workflows import models as m

from pipelines._build import template
from pipelines._contracts import janitor

NAME: Final = "settle"
EVERY_MINUTE: Final = "* * * * *"

SUMMARY: Final = """\
Puts right what a release left whose exit handler could not run: terminated, or deleted. Its candidate is taken out of
the route, its service goes, its outcome is written down. A release that runs is never touched."""


def settle() -> WorkflowTemplate:
    """The WorkflowTemplate `settle`."""
    step = janitor()
    with WorkflowTemplate(
        name=NAME,
        annotations={
            "workflows.argoproj.io/title": "Settle what releases left",
            "workflows.argoproj.io/description": SUMMARY,
        },
        entrypoint=step.name,
        active_deadline_seconds=2 * step.step.deadline_s,
        # Once a minute: nothing is kept of a run that went well but what it wrote into ledger and outcomes.
        archive_logs=False,
        pod_gc=m.PodGC(strategy="OnPodSuccess"),
        ttl_strategy=m.TTLStrategy(seconds_after_success=300, seconds_after_failure=86_400),
    ) as whole:
        template(step)
    return whole


def every_minute() -> CronWorkflow:
    """The CronWorkflow `settle`; one that takes longer than a minute is not overtaken."""
    return CronWorkflow(
        name=NAME,
        schedules=[EVERY_MINUTE],
        concurrency_policy="Forbid",
        starting_deadline_seconds=30,
        successful_jobs_history_limit=1,
        failed_jobs_history_limit=3,
        workflow_template_ref=m.WorkflowTemplateRef(name=NAME),
    )
