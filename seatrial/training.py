"""What a model's `train.py` gives back. The only part of seatrial that an owner's code imports.

    def train(rows: pandas.DataFrame, parameters: dict, seed: int) -> TrainedModel: ...

`rows` holds the id, time, label and feature columns of the training split. The graph takes one input per feature,
named as in model.yaml, of its dtype and shape (batch, 1), and gives the output that `serving.output` names: float32,
shape (batch, width).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A trained model and how to ask the framework for its own answers."""

    onnx: bytes
    """The serialised ONNX ModelProto, its transforms in the graph."""

    answer: Callable[[Any], Any]
    """Feature columns as a pandas DataFrame → float array of shape (rows, width): the framework's own answers."""

    losses: Sequence[float] = ()
    """Training loss over the iterations, finite; empty when the framework tells none."""
