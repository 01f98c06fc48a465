"""What run_canary takes and gives."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from steps._contract import Contract, Gated, Step

STEP = Step(
    summary="Give the candidate traffic step by step, promote it on evidence, or take it back.",
    needs=("store", "cluster", "gateway", "signing", "trust"),
    deadline_s=86_400,
)


class Inputs(Contract):
    """The candidate that deploy_model started."""

    model_name: str = Field(description="the model")
    version: int = Field(ge=1, description="the candidate's version")
    release_id: str = Field(min_length=1, max_length=253, description="the release that owns the route")
    bundle_digest: str = Field(description="sha256:… of the bundle in the candidate's image")
    reason: str = Field(description="why, free text; goes into the ledger")


class Outputs(Contract):
    """Traffic at 100/0 or 0/100, read back."""

    decision: Gated = Field(default="none", description="the gate's decision")
    reason: str = Field(default="", description="the first check that did not pass, and why; empty: none, or no end")
    outcome: Literal["promoted", "rolled_back", "superseded", "none"] = Field(
        default="none", description="who serves now: the candidate, the champion, or somebody newer"
    )
    verdict: Path = Field(description="DSSE envelope: the signed verdict; judged: bundle, record")
    record: Path = Field(description="JSON lines: every look, its counts, e-values and the decision they gave")
    report: Path = Field(description="HTML: decision first, then weights and evidence over time")
