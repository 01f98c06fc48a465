"""What the sweep over all models takes and gives: the step `settle`, in settle_release's image."""

from __future__ import annotations

from pydantic import Field

from steps._contract import Contract, Step

STEP = Step(
    summary="Of every model: put right what a run left that ended without its exit handler.",
    needs=("store", "cluster", "gateway"),
    deadline_s=600,
    cpu="250m",
    memory="512Mi",
)


class Inputs(Contract):
    """Nothing: the models are those that have a route or a service."""


class Outputs(Contract):
    """How much was put right, and how much was not."""

    settled: int = Field(default=0, ge=0, description="releases that were settled, and services that were deleted")
    left: int = Field(default=0, ge=0, description="models left as they are: changed by hand, or something is away")
