"""package_model's ports in memory: a Triton that answers with ONNX Runtime, and the inputs of one release."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fakes_release as made
import numpy as np
from fakes_store import MemoryStore

from seatrial import digests
from seatrial.adapters import rows
from seatrial.adapters.onnx_runtime import OnnxRuntime
from seatrial.adapters.registry import Registry
from seatrial.data.required import REQUIRED
from seatrial.errors import InvalidInput
from seatrial.evaluation.required import required
from seatrial.ports import Answer
from steps.package_model.__main__ import Ports
from steps.package_model.contract import Inputs

BASE = "localhost/seatrial/triton@sha256:" + "a" * 64
NUMPY = {"FP32": np.float32, "INT64": np.int64, "BYTES": np.str_, "BOOL": np.bool_}


@dataclass(frozen=True)
class FakeServer:
    """Answers as Triton would; `shift` is added to each answer, `as_version` is who it says it is."""

    model: Path
    as_version: int
    shift: float = 0.0
    ready_s: float = 0.1

    def ask(self, request: bytes) -> Answer:
        body = json.loads(request)
        columns = {
            entry["name"]: np.asarray(entry["data"], dtype=NUMPY[entry["datatype"]]).reshape(entry["shape"])
            for entry in body["inputs"]
        }
        output = body["outputs"][0]["name"]
        answers = OnnxRuntime().answers(self.model, columns, output) + np.float32(self.shift)
        return Answer(status=200, version=self.as_version, outputs={output: [float(v) for v in answers.ravel()]})

    def statistics(self) -> Mapping[str, Any]:
        return {"inference_count": 0}


@dataclass
class FakeBoot:
    """Boots a `FakeServer`, or refuses with Triton's words."""

    refuses: str = ""
    shift: float = 0.0
    version: int | None = None

    @contextmanager
    def __call__(
        self, repository: Path, *, model_name: str, version: int, log: Path, within_s: float
    ) -> Iterator[FakeServer]:
        if self.refuses:
            raise InvalidInput(self.refuses)
        assert (repository / model_name / "config.pbtxt").exists()
        model = repository / model_name / str(version) / "model.onnx"
        yield FakeServer(model=model, as_version=self.version or version, shift=self.shift)


def ports(store: MemoryStore, **changed: Any) -> Ports:
    given = {
        "store": store,
        "signing_key": made.KEY,
        "trusted_keys": (made.KEY.public_key(),),
        "registry": Registry(prefix="localhost/seatrial", serving_base=BASE),
        "runtime": OnnxRuntime(),
        "boot": FakeBoot(),
    }
    return Ports(**{**given, **changed})


def write_inputs(case: made.Case) -> Inputs:
    """What the gates before would have written, and where it all lies."""
    root = case.root
    papers = ("profile.json", "data.html", "evaluation.html", "card.md", "record.json")
    for name in papers:
        (root / name).write_text(f"the {name}")
    (root / "data.dsse.json").write_bytes(made.signed(case, "validate_data", data_judged(case), required=REQUIRED))
    checks = required(case.spec, champion=case.release.champion is not None)
    (root / "evaluation.dsse.json").write_bytes(
        made.signed(case, "evaluate_model", evaluation_judged(case), required=checks)
    )
    return Inputs(
        release=root / "release.json",
        source=root / "source",
        model=root / "model",
        holdout_rows=root / "holdout.parquet",
        profile=root / "profile.json",
        champion=root / "champion",
        data_verdict=root / "data.dsse.json",
        data_report=root / "data.html",
        evaluation_verdict=root / "evaluation.dsse.json",
        evaluation_report=root / "evaluation.html",
        model_card=root / "card.md",
        training_record=root / "record.json",
    )


def data_judged(case: made.Case) -> dict[str, str]:
    return {"data": case.release.data_digest, "holdout_rows": digests.of_file(case.root / "holdout.parquet")}


def evaluation_judged(case: made.Case) -> dict[str, str]:
    judged = {
        "model": digests.of_file(case.root / "model/model.onnx"),
        "model_files": digests.of_tree(case.root / "model"),
        "holdout_rows": digests.of_file(case.root / "holdout.parquet"),
    }
    champion = case.release.champion
    return judged if champion is None else {**judged, "champion": champion.bundle}


def columns_of(case: made.Case) -> dict[str, Any]:
    """The case's held-out features."""
    return rows.columns(rows.read(case.root / "holdout.parquet"), case.spec.data.features)
