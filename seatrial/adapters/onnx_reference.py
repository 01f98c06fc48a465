"""ONNX's own reference evaluator: slow, exact, and not what serves; the second opinion on a model made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from seatrial.errors import InvalidInput, shortened


def answers(model: onnx.ModelProto, columns: Mapping[str, NDArray[Any]], output: str) -> NDArray[np.float64]:
    """What the graph gives for `output`, shape (rows, width).

    Args:
        model: The model.
        columns: Input name → array of shape (rows, 1).
        output: Name of the output.

    Raises:
        InvalidInput: The evaluator does not know an operator, or the graph fails on these rows.
    """
    try:
        evaluator = ReferenceEvaluator(model)
        (found,) = evaluator.run([output], dict(columns))
    except Exception as error:  # whatever numpy or the evaluator raise
        raise InvalidInput(f"the model cannot be evaluated by ONNX's reference: {shortened(error)}") from error
    return np.asarray(found, dtype=np.float64)
