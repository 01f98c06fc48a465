"""What package_model takes and gives."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from steps._contract import Contract, Gated, Step

STEP = Step(
    summary="Make the bundle, boot the real Triton on it, and keep it in the store with its papers.",
    needs=("store", "signing", "trust", "registry", "triton"),
    deadline_s=900,
    memory="2Gi",
)


class Inputs(Contract):
    """The model and all that is known of it."""

    release: Path = Field(description="release.json of resolve_release")
    source: Path = Field(description="folder: the model's own; model.yaml and, if it has one, its config.pbtxt")
    model: Path = Field(description="folder of train_model: model.onnx")
    holdout_rows: Path = Field(description="Parquet of validate_data: golden and replay requests are made of them")
    profile: Path = Field(description="JSON of validate_data, kept with the papers")
    champion: Path = Field(description="folder of resolve_release: the champion's bundle/; empty on a first release")
    data_verdict: Path = Field(description="DSSE envelope of validate_data")
    data_report: Path = Field(description="HTML of validate_data, kept with the papers")
    evaluation_verdict: Path = Field(description="DSSE envelope of evaluate_model")
    evaluation_report: Path = Field(description="HTML of evaluate_model, kept with the papers")
    model_card: Path = Field(description="Markdown of evaluate_model, kept with the papers")
    training_record: Path = Field(description="JSON of train_model, kept with the papers")


class Outputs(Contract):
    """The bundle, and what the builder needs."""

    decision: Gated = Field(default="none", description="the gate's decision")
    reason: str = Field(default="", description="the first check that did not pass, and why; empty: none, or no end")
    bundle_digest: str = Field(default="", description="sha256:… of the bundle; covers content only")
    repository: str = Field(default="", description="where the builder pushes, like registry/seatrial/cart-abandonment")
    tag: str = Field(default="", description="hash of all that goes into the image; a rerun pushes the same")
    context: Path = Field(description="tar.gz: Dockerfile (one base, COPY, LABEL) and the Triton model repository")
    verdict: Path = Field(description="DSSE envelope: the signed verdict; judged: bundle, model, every paper")
