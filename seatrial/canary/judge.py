"""The evidence of a ramp, and what follows from it after each look."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import Literal

from seatrial.canary import acceptance, regression
from seatrial.canary.acceptance import Acceptance
from seatrial.canary.counts import Counts
from seatrial.canary.outage import Past
from seatrial.canary.regression import Regression
from seatrial.canary.split import Split
from seatrial.canary.stages import Stage, planned_looks, stages
from seatrial.spec import Canary

Next = Literal["hold", "pass", "fail", "inconclusive"]

LIMIT_MAX = 0.5
"""The highest error rate that the last watch may ever tolerate."""


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What to do after a look: hold on, go on to the next stage, or go back."""

    decision: Next
    reason: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that was counted. FAIL is judged over the whole ramp, PASS and the split over the stage alone."""

    plan: Canary
    stages: tuple[Stage, ...]
    at: int
    """Index of the stage."""
    regression: Regression
    past: Past
    acceptance: Acceptance
    split: Split | None
    """None: there is no split in this stage."""
    here: Counts
    """Counted in this stage."""
    total: Counts
    """Counted in all stages."""

    @property
    def stage(self) -> Stage:
        """The stage."""
        return self.stages[self.at]

    @property
    def limit(self) -> float:
        """The error rate that a canary without a stable arm beside it is held to.

        `harmless_rate`; in the last watch, when the stable arm's own rate is higher, the last `ratio_max` times that.
        """
        if self.stage.kind == "header":
            return self.plan.harmless_rate
        return min(LIMIT_MAX, max(self.plan.harmless_rate, self.plan.ratio_max[-1] * self.past.rate))

    def splits_as_before(self, counts: Counts) -> bool:
        """Whether the requests of this interval were split rather by the weight of the stage before."""
        if self.stage.kind != "step":
            return False
        before = self.stages[self.at - 1].weight if self.at else 0
        return abs(counts.share - before / 100) < abs(counts.share - self.stage.weight / 100)

    def surges(self, counts: Counts) -> bool:
        """Whether the stable arm is in trouble in this interval, so that it does not count towards PASS."""
        return self.stage.kind == "step" and self.past.surges(counts)

    def after(self, counts: Counts) -> Evidence:
        """With one more interval of the stage."""
        if self.stage.kind == "step":
            judged = self.regression.after(counts)
        else:
            judged = self.regression.after_alone(counts, self.limit)
        return replace(
            self,
            regression=judged,
            past=self.past.after(counts),
            acceptance=self.acceptance if self.surges(counts) else self.acceptance.after(counts),
            split=None if self.split is None else self.split.after(counts),
            here=_sum(self.here, counts),
            total=_sum(self.total, counts),
        )

    def onward(self) -> Evidence:
        """At the start of the next stage."""
        return replace(
            self,
            at=self.at + 1,
            acceptance=_acceptance(self.plan, self.stages[self.at + 1]),
            split=_split(self.stages[self.at + 1]),
            here=Counts(),
        )


def begin(plan: Canary, *, champion: bool) -> Evidence:
    """Nothing seen yet, at the start of the first stage."""
    all_stages = stages(plan, champion=champion)
    return Evidence(
        plan=plan,
        stages=all_stages,
        at=0,
        regression=regression.begin(plan.ratio_tolerated, planned_looks(plan, champion=champion)),
        past=Past(),
        acceptance=_acceptance(plan, all_stages[0]),
        split=_split(all_stages[0]),
        here=Counts(),
        total=Counts(),
    )


def rule(evidence: Evidence, elapsed_s: float) -> Ruling:
    """What follows, `elapsed_s` seconds into the stage.

    A shown regression fails, for good. A split that is not the one asked for decides nothing, nor does time that runs
    out, nor a stage without a request: all of these go back.
    """
    stage, threshold = evidence.stage, log(1 / evidence.plan.alpha)
    if evidence.regression.highest >= threshold:
        return Ruling(decision="fail", reason=f"{_against(evidence)}: {_e(evidence.regression.highest, evidence)}")
    if evidence.split is not None and evidence.split.wrong(_steps(evidence)):
        return Ruling(decision="inconclusive", reason=_wrong_split(evidence.split))
    shown = evidence.here.canary_requests > 0 and (stage.kind == "watch" or evidence.acceptance.log_e >= threshold)
    if elapsed_s >= stage.min_s and shown:
        return Ruling(decision="pass", reason=f"{_against(evidence)}: {stage.name} passed")
    if elapsed_s >= stage.max_s:
        return Ruling(decision="inconclusive", reason=_too_little(evidence, elapsed_s))
    against = f"{_e(evidence.regression.log_e, evidence)} against it"
    if stage.kind == "watch":
        return Ruling(decision="hold", reason=f"{_against(evidence)}: {against}")
    return Ruling(
        decision="hold", reason=f"{_against(evidence)}: {_e(evidence.acceptance.log_e, evidence)} for it, {against}"
    )


def _acceptance(plan: Canary, stage: Stage) -> Acceptance:
    return acceptance.begin(ratio_max=stage.ratio_max, harmless_rate=plan.harmless_rate)


def _split(stage: Stage) -> Split | None:
    return Split(asked=stage.weight / 100) if stage.kind == "step" else None


def _steps(evidence: Evidence) -> int:
    return sum(stage.kind == "step" for stage in evidence.stages)


def _sum(one: Counts, other: Counts) -> Counts:
    return Counts(
        stable_requests=one.stable_requests + other.stable_requests,
        stable_errors=one.stable_errors + other.stable_errors,
        canary_requests=one.canary_requests + other.canary_requests,
        canary_errors=one.canary_errors + other.canary_errors,
    )


def _against(evidence: Evidence) -> str:
    seen = evidence.total
    canary = f"{seen.canary_errors} of {seen.canary_requests} canary requests failed"
    if evidence.stage.kind == "header":
        return f"{canary}, at most {evidence.limit:.2%} may"
    return f"{canary}, {seen.stable_errors} of {seen.stable_requests} stable ones"


def _e(log_e: float, evidence: Evidence) -> str:
    return f"e-value {exp(min(log_e, 50.0)):.3g} of {1 / evidence.plan.alpha:g}"


def _wrong_split(split: Split) -> str:
    return (
        f"the gateway gave the canary {split.share:.2%} of {split.requests} requests, asked for were "
        f"{split.asked:.2%}: look at the gateway"
    )


def _too_little(evidence: Evidence, elapsed_s: float) -> str:
    if not evidence.here.canary_requests:
        return f"no counted request reached the canary at {evidence.stage.name} in {elapsed_s:.0f} s"
    return (
        f"{_against(evidence)}: {_e(evidence.acceptance.log_e, evidence)} after {elapsed_s:.0f} s, too little to pass"
    )
