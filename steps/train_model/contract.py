"""What train_model takes and gives."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from steps._contract import Contract, Step

STEP = Step(
    summary="Train the model with its owner's code, or take the ONNX file that the source brings.",
    needs=("tracking",),
    deadline_s=86_400,
    memory="4Gi",
)


class Inputs(Contract):
    """Training rows only: no step before the gate shows the owner's code a held-out row."""

    release: Path = Field(description="release.json of resolve_release")
    source: Path = Field(description="folder: the model's own; its train.py runs in a child process")
    train_rows: Path = Field(description="Parquet of validate_data")


class Outputs(Contract):
    """The model."""

    run_id: str = Field(default="", description="MLflow run of this training; empty: none was written")
    model: Path = Field(description="folder: model.onnx, one file that holds all tensors")
    answers: Path = Field(description="NumPy .npz: the framework's own answers on parity rows; see steps.train_model")
    record: Path = Field(description="JSON: parameters, seed, losses, versions, device, isolation, seconds")
