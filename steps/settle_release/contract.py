"""What settle_release takes and gives."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from steps._contract import Contract, Step

STEP = Step(
    summary="However the release ended: traffic on a watched or promoted version, nothing left over, ledger complete.",
    needs=("store", "cluster", "gateway"),
    deadline_s=600,
)


class Inputs(Contract):
    """The run that ended."""

    model_name: str = Field(description="the model")
    release_id: str = Field(min_length=1, max_length=253, description="the release; only what it owns is touched")
    workflow_name: str = Field(description="the Workflow to read what happened from")
    workflow_status: str = Field(description="Succeeded, Failed or Error, as the exit handler is told")
    reason: str = Field(description="why the release was asked for, free text")


class Outputs(Contract):
    """How the release ended; the exit code is 0 only for promoted and unchanged (seatrial.release.EXIT_CODES)."""

    outcome: Literal["promoted", "unchanged", "refused", "rolled_back", "superseded", "failed", "none"] = Field(
        default="none", description="how the release ended"
    )
    summary: Path = Field(description="JSON: outcome, reasons, version, champion, bundle, image, what was cleaned up")
