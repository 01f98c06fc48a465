"""ONNX Runtime on the CPU: a model's answers to rows, here or in a process of its own.

`python -m seatrial.adapters.onnx_runtime MODEL COLUMNS.npz OUTPUT ANSWERS.npy` is that other process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from seatrial.errors import InvalidInput, Unavailable, shortened
from seatrial.evaluation.runtime import Columns

BATCH_ROWS: Final = 4096
"""Rows in one run, so that memory does not grow with the data."""
ELSEWHERE_S: Final = 300
"""Seconds that the other process may take."""

_ONNX: Final = {
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


class OnnxRuntime:
    """Models run by onnxruntime with one thread, so that sums keep their order."""

    def answers(self, model: Path, columns: Columns, output: str) -> NDArray[np.float32]:
        """The model's answers, shape (rows, width); features that it does not ask for are left out.

        Raises:
            InvalidInput: It cannot be loaded, wants an input that is no column, has no such output, or fails.
        """
        session = _session(model)
        feeds = {entry.name: _fed(entry, columns) for entry in session.get_inputs()}
        if not feeds:
            raise InvalidInput("the model must take at least one input; it takes none")
        outputs = [entry.name for entry in session.get_outputs()]
        if output not in outputs:
            raise InvalidInput(f"the model must give the output {output!r}; it gives {outputs}")
        rows = len(next(iter(feeds.values())))
        try:
            parts = [
                session.run([output], {name: values[start : start + BATCH_ROWS] for name, values in feeds.items()})[0]
                for start in range(0, rows, BATCH_ROWS)
            ]
        except Exception as error:  # onnxruntime's exceptions share no type but this one
            raise InvalidInput(f"the model cannot answer its own features: {shortened(error)}") from error
        if not parts:
            return np.empty((0, 1), dtype=np.float32)
        answers = np.concatenate([np.asarray(part, dtype=np.float32) for part in parts])
        if answers.ndim != 2 or len(answers) != rows:
            raise InvalidInput(f"the output {output!r} must have shape ({rows}, width); got {answers.shape}")
        return answers

    def answers_elsewhere(self, model: Path, columns: Columns, output: str) -> NDArray[np.float32]:
        """The same from a process of its own, started for this and ended after it."""
        with tempfile.TemporaryDirectory() as folder:
            asked, answered = Path(folder, "columns.npz"), Path(folder, "answers.npy")
            np.savez(asked, allow_pickle=False, **{name: _plain(values) for name, values in columns.items()})
            command = [sys.executable, "-m", __name__, str(model), str(asked), output, str(answered)]
            try:
                subprocess.run(command, check=True, timeout=ELSEWHERE_S, capture_output=True, text=True)
            except subprocess.TimeoutExpired as error:
                raise Unavailable(f"a process that runs the model did not end within {ELSEWHERE_S} s") from error
            except subprocess.CalledProcessError as error:
                raise InvalidInput(f"a process that runs the model failed: {shortened(error.stderr[-256:])}") from error
            answers: NDArray[np.float32] = np.load(answered, allow_pickle=False)
            return answers


def _session(model: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no type but this one
        raise InvalidInput(f"{model.name} cannot be loaded by ONNX Runtime: {shortened(error)}") from error


def _fed(entry: Any, given: Columns) -> NDArray[Any]:  # noqa: ANN401 - onnxruntime has no types
    if entry.name not in given:
        raise InvalidInput(f"the model asks for the input {entry.name!r}; the features are {sorted(given)}")
    if entry.type not in _ONNX:
        raise InvalidInput(f"the model's input {entry.name!r} is a {entry.type}; it may be one of {sorted(_ONNX)}")
    return given[entry.name].astype(_ONNX[entry.type]).reshape(-1, 1)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.str_) if values.dtype == object else values


def _main(model: str, asked: str, output: str, answered: str) -> None:
    with np.load(asked, allow_pickle=False) as given:
        columns_given = {name: given[name] for name in given.files}
    np.save(answered, OnnxRuntime().answers(Path(model), columns_given, output))


if __name__ == "__main__":
    _main(*sys.argv[1:])
