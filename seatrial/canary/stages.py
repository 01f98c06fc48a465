"""The canary plan, stage by stage."""

from __future__ import annotations

from math import ceil
from typing import Literal

from pydantic import Field

from seatrial.spec import Canary, Closed

WATCH_PATIENCE: float = 3.0
"""The last watch may take so many times `watch_s`, and 30 s, until at least one request was counted."""


class Stage(Closed):
    """One stretch of time with one weight."""

    kind: Literal["step", "watch", "header"] = Field(
        description="step: both arms serve; watch: the canary alone, before promotion; header: a first release, which "
        "only header-routed requests reach"
    )
    weight: int = Field(ge=0, le=100, description="percent of traffic for the canary")
    min_s: float = Field(gt=0)
    max_s: float = Field(gt=0)
    ratio_max: float | None = Field(description="None: no stable arm to compare with")

    @property
    def name(self) -> str:
        """For people."""
        return "requests by header" if self.kind == "header" else f"{self.weight} % of traffic"


def stages(plan: Canary, *, champion: bool) -> tuple[Stage, ...]:
    """Every stage in order; the last `ratio_max` of the plan holds for all further steps.

    Args:
        plan: The spec's canary plan.
        champion: Whether a version serves already; else one stage by header, as long as the first step.
    """
    if not champion:
        first = plan.steps[0]
        return (Stage(kind="header", weight=0, min_s=first.min_s, max_s=first.max_s, ratio_max=None),)
    steps = (
        Stage(
            kind="step",
            weight=step.weight,
            min_s=step.min_s,
            max_s=step.max_s,
            ratio_max=plan.ratio_max[min(index, len(plan.ratio_max) - 1)],
        )
        for index, step in enumerate(plan.steps)
    )
    patience = WATCH_PATIENCE * plan.watch_s + 30.0
    return (*steps, Stage(kind="watch", weight=100, min_s=plan.watch_s, max_s=patience, ratio_max=None))


def planned_looks(plan: Canary, *, champion: bool) -> int:
    """Most looks that the plan allows, at least 1."""
    return max(1, ceil(sum(stage.max_s for stage in stages(plan, champion=champion)) / plan.interval_s))
