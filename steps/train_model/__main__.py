"""The step: the owner's code makes a model in a child process; the graph is what the spec says, or it is refused.

`answers.npz` holds, of up to 512 training rows and the edges, `input__<feature>` of shape (rows, 1) and `answer`,
float64 of shape (rows, width): the framework's own answers. A model made elsewhere is answered by ONNX's reference.
"""

from __future__ import annotations

import json
import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial import digests, release
from seatrial.adapters import rows
from seatrial.errors import InvalidInput, shortened
from seatrial.ports import Tracking
from seatrial.release import Release
from seatrial.spec import Spec, TrainOnnx, TrainPython
from steps import _runtime
from steps._source import spec_of
from steps.train_model import archive, isolation, logic, returned
from steps.train_model.contract import STEP, Inputs, Outputs


def run(inputs: Inputs, scratch: Path, tracking: Callable[[], Tracking]) -> Outputs:
    """Train or take the model, check it, write down how it was made.

    Raises:
        InvalidInput: The owner's code fails, or its model is not what the spec says.
        Unavailable: The tracking server is away.
    """
    about = release.read(inputs.release)
    spec = spec_of(inputs.source, about)
    tracker = tracking()  # before hours of training: a missing setting is found now
    train_rows = rows.read(inputs.train_rows)
    seed = spec.training.seed if isinstance(spec.training, TrainPython) else 0
    parity = logic.parity_rows(train_rows, spec.data, seed)
    folder = scratch / "model"
    folder.mkdir()
    started = time.monotonic()
    if isinstance(spec.training, TrainPython):
        answer, told = _trained(inputs.source, train_rows, parity, spec, spec.training, scratch, folder)
    else:
        answer, told = _taken(inputs.source, parity, spec, spec.training, folder)
    record = _record(about, spec, told, folder, rows=train_rows.height, seconds=time.monotonic() - started)
    (scratch / "record.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    columns = rows.columns(parity, spec.data.features)
    arrays: dict[str, Any] = {f"input__{name}": values for name, values in columns.items()}
    archive.write(scratch / "answers.npz", {"answer": answer, **arrays})
    run_id = tracker.log(model_name=about.model_name, record=record, files=[scratch / "record.json"])
    _runtime.event("tracked", run_id=run_id)
    return Outputs(run_id=run_id, model=folder, answers=scratch / "answers.npz", record=scratch / "record.json")


def _trained(  # noqa: PLR0917 - the child's whole world
    source: Path,
    train_rows: pl.DataFrame,
    parity: pl.DataFrame,
    spec: Spec,
    training: TrainPython,
    scratch: Path,
    folder: Path,
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """The model of the owner's train.py, and the framework's answers."""
    file = (source / training.file).resolve()
    if not file.is_file():
        raise InvalidInput(f"{spec.model} has no {training.file}: model.yaml names it under training.file")
    work = scratch / "work"
    work.mkdir()
    request = {"file": str(file), "parameters": training.parameters, "seed": training.seed}
    (work / "request.json").write_text(json.dumps(request), encoding="utf-8")
    train_rows.write_parquet(work / "rows.parquet")
    parity.write_parquet(work / "parity.parquet")
    _runtime.event("training", file=training.file, rows=train_rows.height, parameters=training.parameters)
    ended = isolation.run(work.resolve(), source.resolve(), deadline_s=training.deadline_s)
    if ended.exit_code != 0 or not (work / "told.json").exists():
        raise InvalidInput(_fault(work, ended.exit_code, training.file))
    told = returned.note(work, "told.json", returned.Told)
    logic.losses(told.losses)
    model = returned.read(work, "model.onnx", returned.MODEL_MAX)
    logic.graph(model, spec)
    (folder / "model.onnx").write_bytes(model)
    answer = logic.answers(returned.answer(work), parity.height, spec)
    shutil.rmtree(work)
    return answer, {**told.model_dump(), "framework": "train.py", "isolation": ended.isolation}


def _taken(
    source: Path, parity: pl.DataFrame, spec: Spec, training: TrainOnnx, folder: Path
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """The model that the source brings, and the reference evaluator's answers."""
    from seatrial.adapters import onnx_reference  # noqa: PLC0415 - only this kind needs it

    file = source / training.file
    try:
        model = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{spec.model} has no {training.file}: model.yaml names it under training.file") from error
    proto = logic.graph(model, spec)
    (folder / "model.onnx").write_bytes(model)
    columns = rows.columns(parity, spec.data.features)
    answer = logic.answers(onnx_reference.answers(proto, columns, spec.serving.output.name), parity.height, spec)
    return answer, {"losses": [], "versions": {}, "framework": "onnx reference", "isolation": "not trained"}


def _fault(work: Path, exit_code: int, file: str) -> str:
    """Why the owner's code failed, with its own file and line."""
    try:
        fault = returned.note(work, "fault.json", returned.Fault)
    except InvalidInput:
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        return f"{file} {how} before it gave back a model; its output is in this step's log"
    return f"{shortened(fault.where)} failed: {shortened(fault.error)}"


def _record(
    about: Release, spec: Spec, told: dict[str, Any], folder: Path, *, rows: int, seconds: float
) -> dict[str, Any]:
    training = spec.training
    return {
        "model_name": about.model_name,
        "version": about.version,
        "release_id": about.release_id,
        "revision": about.revision,
        "kind": training.kind,
        "parameters": training.parameters if isinstance(training, TrainPython) else {},
        "seed": training.seed if isinstance(training, TrainPython) else None,
        **told,
        "python": platform.python_version(),
        "device": "cpu",
        "rows": rows,
        "seconds": round(seconds, 3),
        "model_digest": digests.of_file(folder / "model.onnx"),
        "data_digest": about.data_digest,
        "source_digest": about.source_digest,
    }


if __name__ == "__main__":
    from seatrial.adapters import mlflow

    _runtime.main("train_model", STEP, Inputs, lambda inputs, scratch: run(inputs, scratch, mlflow.from_environment))
