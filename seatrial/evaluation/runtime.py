"""What evaluation and packaging need of a thing that runs ONNX models; `adapters.onnx_runtime` is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""Feature name → values of shape (rows, 1), in the dtype that the model takes."""


class Runtime(Protocol):
    """Runs ONNX models."""

    def answers(self, model: Path, columns: Columns, output: str) -> NDArray[np.float32]:
        """The model's answers, shape (rows, width); features that it does not ask for are left out.

        Raises:
            InvalidInput: It cannot be loaded, wants an input that is no column, or has no such output.
        """
        ...

    def answers_elsewhere(self, model: Path, columns: Columns, output: str) -> NDArray[np.float32]:
        """The same from a process of its own, started for this and ended after it."""
        ...
