"""The record of a canary: JSON lines from which its decision can be computed again.

opening   what is on trial, by which plan
look      one per interval: counts, e-values, what followed
ending    the checks that came of it
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from seatrial.canary.counts import Counts
from seatrial.canary.judge import Evidence, Next, Ruling, begin, rule
from seatrial.digests import Digest, canonical
from seatrial.errors import IntegrityError, shortened
from seatrial.names import ModelName
from seatrial.spec import Canary, Closed, Decision
from seatrial.verdict import Check

ReplayMode = Literal["weighted", "header", "none"]

LOG_E_MIN = -1e6
"""Stands for log 0, which JSON cannot say."""


class Opening(Closed):
    """What is on trial."""

    kind: Literal["opening"] = "opening"
    release_id: str
    model_name: ModelName
    version: int = Field(ge=1)
    champion: int | None = Field(description="None: a first release")
    bundle: Digest
    plan: Canary
    replay: ReplayMode = Field(description="how held-out requests are replayed")


class Look(Closed):
    """One interval, or why it was not counted."""

    kind: Literal["look"] = "look"
    at: datetime = Field(strict=False, description="UTC")
    stage: int = Field(ge=0)
    weight: int = Field(ge=0, le=100, description="percent for the canary")
    elapsed_s: float = Field(ge=0, description="seconds into the stage")
    counts: Counts | None = Field(description="None: not counted")
    dropped: str = Field(default="", description="why not counted; empty: counted")
    surge: bool = Field(default=False, description="the stable arm is in trouble: does not count towards pass")
    replayed: int = Field(default=0, ge=0, description="of the requests, answers that our own replay got")
    fail_log_e: float
    pass_log_e: float
    split_log_e: float | None = Field(description="None: no split in this stage")
    decision: Next
    reason: str


class Ending(Closed):
    """What came of it, before anybody's traffic was moved for good."""

    kind: Literal["ending"] = "ending"
    decision: Decision
    checks: tuple[Check, ...]


Line = Annotated[Opening | Look | Ending, Field(discriminator="kind")]
_LINE: TypeAdapter[Opening | Look | Ending] = TypeAdapter(Line)


def line(entry: Opening | Look | Ending) -> bytes:
    """One line of the record."""
    return canonical(entry.model_dump(mode="json")) + b"\n"


def read(text: bytes) -> list[Opening | Look | Ending]:
    """The entries of a record.

    Raises:
        IntegrityError: A line is none.
    """
    try:
        return [_LINE.validate_json(row) for row in text.splitlines() if row]
    except ValidationError as error:
        raise IntegrityError(f"a line of the canary's record cannot be read: {shortened(error)}") from error


def look(
    evidence: Evidence,
    ruling: Ruling,
    counts: Counts | str,
    *,
    at: datetime,
    elapsed_s: float,
    surge: bool,
    replayed: int,
) -> Look:
    """The line about an interval; `evidence` is that after it."""
    return Look(
        at=at,
        stage=evidence.at,
        weight=evidence.stage.weight,
        elapsed_s=elapsed_s,
        counts=None if isinstance(counts, str) else counts,
        dropped=counts if isinstance(counts, str) else "",
        surge=surge,
        replayed=replayed,
        fail_log_e=max(evidence.regression.log_e, LOG_E_MIN),
        pass_log_e=max(evidence.acceptance.log_e, LOG_E_MIN),
        split_log_e=None if evidence.split is None else max(evidence.split.log_e, LOG_E_MIN),
        decision=ruling.decision,
        reason=ruling.reason,
    )


def recompute(opening: Opening, looks: Iterable[Look]) -> Ruling:
    """What follows from the counts of the looks alone; `hold` when they end before the last stage is decided.

    Raises:
        IntegrityError: A look says something else than its counts do, or stands in another stage.
    """
    evidence = begin(opening.plan, champion=opening.champion is not None)
    ruling, done = Ruling(decision="hold", reason="no look"), False
    for number, one in enumerate(looks):
        if done or one.stage != evidence.at:
            raise IntegrityError(f"look {number} of the canary's record stands in stage {one.stage}, not {evidence.at}")
        evidence = evidence if one.counts is None else evidence.after(one.counts)
        ruling = rule(evidence, one.elapsed_s)
        if ruling.decision != one.decision:
            raise IntegrityError(f"look {number} of the canary's record says {one.decision}; {ruling.decision} follows")
        last = evidence.at == len(evidence.stages) - 1
        done = ruling.decision in {"fail", "inconclusive"} or (ruling.decision == "pass" and last)
        if ruling.decision == "pass" and not last:
            evidence, ruling = evidence.onward(), Ruling(decision="hold", reason="the next stage has no look")
    return ruling
