"""What deploy_model takes and gives."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from steps._contract import Contract, Gated, Step

STEP = Step(
    summary="Start the version behind the gateway at weight 0 and see it answer right.",
    needs=("store", "cluster", "gateway", "trust", "registry"),
    deadline_s=1800,
)


class Inputs(Contract):
    """An image and the bundle that must be in it."""

    model_name: str = Field(description="the model")
    version: int = Field(ge=1, description="the version to deploy")
    release_id: str = Field(
        min_length=1, max_length=253, description="the release that does it; becomes the route's owner"
    )
    image: str = Field(description="repository@sha256:…")
    bundle_digest: str = Field(description="sha256:… whose papers must hold all verdicts, signed and passed")
    reason: str = Field(description="why, free text; goes into the ledger")


class Outputs(Contract):
    """A candidate that is up, or why not."""

    decision: Gated = Field(default="none", description="pass: truly ready and golden answers right over the wire")
    outcome: Literal["deployed", "unchanged", "not_ready", "wrong_answers", "superseded", "none"] = Field(
        default="none", description="what happened"
    )
    reason: str = Field(default="", description="why it was not deployed; empty: it was, or no end")
    service: str = Field(default="", description="the InferenceService, like click-prediction-v42")
    record: Path = Field(description="JSON: what was waited for, what was seen, seconds")
