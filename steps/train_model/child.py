"""The child process in which the owner's train.py runs: rows and parameters in, a model and its answers out.

python -m steps.train_model.child <folder>      with <folder>/request.json, rows.parquet, parity.parquet
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import polars as pl

from seatrial.training import TrainedModel


def main(folder: Path) -> None:
    """Train, ask for the framework's own answers, write `model.onnx`, `answer.npy` and `told.json`, or `fault.json`."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        told = _train(folder, request)
    except Exception as error:  # noqa: BLE001 - the owner's code may raise whatever it likes
        fault = {"error": f"{type(error).__name__}: {error}", "where": _where(error, Path(request["file"]))}
        (folder / "fault.json").write_text(json.dumps(fault), encoding="utf-8")
        traceback.print_exc()
        _leave(1)
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")
    _leave(0)


def _leave(exit_code: int) -> NoReturn:
    """End now: a thread that the owner's code left running is not waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def _train(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    module = _load(Path(request["file"]))
    if not callable(getattr(module, "train", None)):
        raise TypeError("train.py must define train(rows, parameters, seed)")
    rows = pl.read_parquet(folder / "rows.parquet").to_pandas()
    trained = module.train(rows, dict(request["parameters"]), int(request["seed"]))
    if not isinstance(trained, TrainedModel):
        raise TypeError(f"train() must give back a seatrial.training.TrainedModel; got {type(trained).__name__}")
    if not isinstance(trained.onnx, bytes):
        raise TypeError(
            f"TrainedModel.onnx must be bytes (ModelProto.SerializeToString()); got {type(trained.onnx).__name__}"
        )
    parity = pl.read_parquet(folder / "parity.parquet").to_pandas()
    answer = np.asarray(trained.answer(parity), dtype=np.float64)
    (folder / "model.onnx").write_bytes(trained.onnx)
    np.save(folder / "answer.npy", answer)
    return {"losses": [float(loss) for loss in trained.losses], "versions": _versions()}


def _load(file: Path) -> ModuleType:
    sys.path.insert(0, str(file.parent))
    wanted = importlib.util.spec_from_file_location("train", file)
    if wanted is None or wanted.loader is None:
        raise ImportError(f"{file.name} is no Python file")
    module = importlib.util.module_from_spec(wanted)
    sys.modules["train"] = module  # dataclasses and pickle look their module up by its name
    wanted.loader.exec_module(module)
    return module


def _versions() -> dict[str, str]:
    """Of the libraries that the training imported."""
    libraries = ("numpy", "pandas", "sklearn", "lightgbm", "xgboost", "torch", "onnx", "skl2onnx")
    loaded = {name: sys.modules[name] for name in libraries if name in sys.modules}
    return {name: str(getattr(module, "__version__", "unknown")) for name, module in loaded.items()}


def _where(error: BaseException, file: Path) -> str:
    """The last line of the owner's own file in the traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file]
    return f"{file.name}:{frames[-1].lineno}" if frames else file.name


if __name__ == "__main__":
    main(Path(sys.argv[1]))
