"""What validate_data takes and gives."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from steps._contract import Contract, Gated, Step

STEP = Step(
    summary="Judge the data by its contract and split it into training and held-out rows.",
    needs=("signing",),
    deadline_s=1800,
    memory="4Gi",
)


class Inputs(Contract):
    """The data and what it is judged by."""

    release: Path = Field(description="release.json of resolve_release")
    source: Path = Field(description="folder: the model's own; model.yaml and its expectations are read")
    data: Path = Field(description="file: CSV or Parquet, one row per question")


class Outputs(Contract):
    """The dataset snapshot and the verdict on it."""

    decision: Gated = Field(default="none", description="the gate's decision")
    reason: str = Field(default="", description="the first check that did not pass, and why; empty: none, or no end")
    train_rows: Path = Field(description="Parquet: rows to train on; declared columns, declared types, in id order")
    holdout_rows: Path = Field(description="Parquet: rows held out, by hash of the id; the same columns")
    profile: Path = Field(description="JSON: per column count, missing share, quantiles or frequent values")
    quarantine: Path = Field(description="Parquet: rows that break the contract, with the reason of each")
    verdict: Path = Field(description="DSSE envelope: the signed verdict; judged: train_rows, holdout_rows, data")
    report: Path = Field(description="HTML: decision first, then each check")
