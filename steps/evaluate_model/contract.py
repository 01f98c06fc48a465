"""What evaluate_model takes and gives."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from steps._contract import Contract, Gated, Step

STEP = Step(
    summary="Compare candidate and champion on the same held-out rows, and hold the candidate to absolute floors.",
    needs=("signing",),
    deadline_s=1800,
    memory="2Gi",
)


class Inputs(Contract):
    """The candidate, the champion and the rows that neither has seen."""

    release: Path = Field(description="release.json of resolve_release")
    source: Path = Field(description="folder: the model's own; model.yaml is read")
    model: Path = Field(description="folder of train_model: model.onnx")
    answers: Path = Field(description="NumPy .npz of train_model: the framework's own answers")
    holdout_rows: Path = Field(description="Parquet of validate_data")
    champion: Path = Field(description="folder of resolve_release: the champion's bundle/; empty on a first release")


class Outputs(Contract):
    """The verdict."""

    decision: Gated = Field(default="none", description="the gate's decision")
    reason: str = Field(default="", description="the first check that did not pass, and why; empty: none, or no end")
    verdict: Path = Field(description="DSSE envelope: judged: model, model_files, answers, holdout_rows, champion")
    report: Path = Field(description="HTML: decision first, then each check")
    model_card: Path = Field(description="Markdown: what the model is, on what it was judged, with which result")
