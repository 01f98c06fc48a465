"""What resolve_release takes and gives."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from steps._contract import Contract, Step

STEP = Step(
    summary="Find out what is to be released: source, data, version and champion; or that nothing changed.",
    needs=("store", "source", "cluster"),
    deadline_s=600,
)


class Inputs(Contract):
    """What was asked for."""

    model_name: str = Field(description="folder in models/; an unknown one is refused and the known ones are named")
    revision: str = Field(description="commit, branch or tag of the source; empty: the source as it is")
    data_uri: str = Field(description="data with one row per question: s3://…, or file://… where the step can see it")
    reason: str = Field(description="why, free text; goes into the ledger")
    release_id: str = Field(min_length=1, max_length=253, description="the Workflow's uid; a retry keeps its version")


class Outputs(Contract):
    """What the later steps work on."""

    outcome: Literal["new", "unchanged", "none"] = Field(
        default="none", description="unchanged: source, spec, data and step images are the champion's"
    )
    version: int = Field(
        default=0, ge=0, description="reserved for this release id; the champion's when unchanged; 0: none"
    )
    pod_spec_patch: str = Field(
        default="{}", description="strategic merge patch for train-model's pod: resources and node from the spec, JSON"
    )
    release: Path = Field(description="release.json, what every later step reads; see seatrial.release")
    source: Path = Field(description="folder: the model's own, as of the revision")
    data: Path = Field(description="file: the data, byte for byte")
    champion: Path = Field(description="folder: the champion's bundle/; empty on a first release")
