"""An owner's folder with a train.py of the test's own, and a tracking server in memory."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fakes_release as made
import yaml

from seatrial import digests, spec
from seatrial.release import Release
from steps.train_model.__main__ import run
from steps.train_model.contract import Inputs, Outputs

GOOD = """
from pathlib import Path
import numpy as np
from seatrial.training import TrainedModel

MODEL = Path(__file__).with_name("trained.onnx").read_bytes()

def answer(features):
    logit = (1.5 * features["price"].fillna(0.0) + 0.5 * features["visits"] + 0.4 * features["member"]
             + np.where(features["shop"] == "hill", -1.0, 0.2) - 1.0)
    return (1 / (1 + np.exp(-logit.astype(float)))).to_numpy().reshape(-1, 1)

def train(rows, parameters, seed):
    return TrainedModel(onnx=MODEL, answer=answer, losses=[0.7, 0.5])
"""
"""A train.py that gives back trained.onnx and its own sum."""


@dataclass
class Tracker:
    """Runs as they were told."""

    runs: list[Mapping[str, Any]] = field(default_factory=list)

    def log(self, *, model_name: str, record: Mapping[str, Any], files: Iterable[Path]) -> str:
        self.runs.append({"model": model_name, **record, "files": [path.name for path in files]})
        return f"run-{len(self.runs)}"


def trained(
    root: Path,
    code: str = GOOD,
    *,
    model: bytes | None = None,
    training: dict[str, Any] | None = None,
    tracker: Tracker | None = None,
) -> Outputs:
    """Run train_model on a folder with this train.py, in this process."""
    source, scratch = root / "source", root / "scratch"
    source.mkdir(parents=True)
    scratch.mkdir()
    raw = made.spec_data()
    raw["training"] = {"kind": "python", **(training or {})}
    (source / "model.yaml").write_text(yaml.safe_dump(raw))
    if code:
        (source / "train.py").write_text(textwrap.dedent(code))
    (source / "trained.onnx").write_bytes(made.onnx_model() if model is None else model)
    wanted = spec.parse(yaml.safe_dump(raw))
    release = Release(
        release_id="uid-1", model_name=wanted.model, version=1, revision="abc", reason="a test",
        data_uri="file://orders.csv", source_digest=made.ZERO, spec_digest=wanted.digest,
        data_digest=digests.of_bytes(b"orders"), images_digest=made.ZERO, release_digest=made.ZERO, champion=None,
    )  # fmt: skip
    (root / "release.json").write_text(release.model_dump_json())
    made.rows(200).write_parquet(root / "train.parquet")
    inputs = Inputs(release=root / "release.json", source=source, train_rows=root / "train.parquet")
    used = tracker or Tracker()
    return run(inputs, scratch, lambda: used)
