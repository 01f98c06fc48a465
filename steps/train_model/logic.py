"""What the trained graph must look like, and which rows the framework answers for comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import onnx
import polars as pl
from numpy.typing import NDArray
from onnx import TensorProto
from onnx.external_data_helper import uses_external_data

from seatrial.errors import InvalidInput, shortened
from seatrial.spec import Data, Dtype, Spec
from seatrial.triton.target import too_new

PARITY_ROWS: Final = 512
"""Rows on which ONNX and framework are compared."""
LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
UNSEEN: Final = "a word that no row has"
_ELEMENT: Final[dict[Dtype, int]] = {
    "float32": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "string": TensorProto.STRING,
    "bool": TensorProto.BOOL,
}


def parity_rows(rows: pl.DataFrame, data: Data, seed: int) -> pl.DataFrame:
    """Feature columns of up to `PARITY_ROWS` rows, and the edges: per string an unseen word, per nullable a gap."""
    names = [column.name for column in data.features]
    drawn = rows.select(names).sample(n=min(PARITY_ROWS, rows.height), seed=seed)
    edges = []
    for column in data.features:
        first = drawn.head(1)
        if column.dtype == "string":
            edges.append(first.with_columns(pl.lit(UNSEEN).alias(column.name)))
        if column.nullable:
            edges.append(first.with_columns(pl.lit(None, dtype=first.schema[column.name]).alias(column.name)))
    return pl.concat([drawn, *edges])


def graph(model: bytes, spec: Spec) -> onnx.ModelProto:
    """The model in `model`, whose graph is what the spec says.

    Raises:
        InvalidInput: It does not parse or check, another signature, or newer than the serving base can load.
    """
    if model.startswith(LFS_POINTER):
        raise InvalidInput("the model is a Git LFS pointer, not the model: fetch it with `git lfs pull`")
    try:
        proto = onnx.load_model_from_string(model)
        beside = [tensor.name for tensor in _tensors(proto.graph) if uses_external_data(tensor)]
        if not beside:
            onnx.checker.check_model(proto)
    except Exception as error:  # protobuf's and onnx's own errors have no common base
        raise InvalidInput(f"the model is no valid ONNX: {shortened(error)}") from error
    if beside:
        raise InvalidInput(
            f"the model keeps {len(beside)} tensors in files beside it, like {shortened(beside[0])!r}; wanted one file"
        )
    initial = {tensor.name for tensor in proto.graph.initializer}
    inputs = {value.name: _signature(value) for value in proto.graph.input if value.name not in initial}
    outputs = {value.name: _signature(value) for value in proto.graph.output}
    wanted = {column.name: (_ELEMENT[column.dtype], 1) for column in spec.data.features}
    output = spec.serving.output
    faults = [
        *_differences("input", inputs, wanted),
        *_differences("output", outputs, {output.name: (TensorProto.FLOAT, output.width)}),
        *too_new(proto.ir_version, {entry.domain: entry.version for entry in proto.opset_import}),
    ]
    if faults:
        raise InvalidInput("the graph is not what model.yaml says: " + "; ".join(faults))
    return proto


def answers(answer: NDArray[np.float64], rows: int, spec: Spec) -> NDArray[np.float64]:
    """The framework's answers, shape (rows, width), finite.

    Raises:
        InvalidInput: Another shape, or NaN or infinity in it.
    """
    wanted = (rows, spec.serving.output.width)
    if answer.shape != wanted:
        raise InvalidInput(f"TrainedModel.answer must give an array of shape {wanted}; got {answer.shape}")
    if not np.isfinite(answer).all():
        raise InvalidInput(f"TrainedModel.answer gave {int((~np.isfinite(answer)).sum())} values that are not finite")
    return answer


def losses(told: list[float]) -> list[float]:
    """The training losses.

    Raises:
        InvalidInput: One is NaN or infinite.
    """
    if not np.isfinite(np.asarray(told, dtype=float)).all():
        raise InvalidInput(f"the training loss must stay finite; it went {shortened(told[-5:])}")
    return told


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a graph and of the graphs within it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _tensors(inner)


def _signature(value: Any) -> tuple[int, int | None]:  # noqa: ANN401 - onnx has no types
    """Element type, and width of a tensor of shape (batch, width); None for any other shape."""
    tensor = value.type.tensor_type
    dims = list(tensor.shape.dim)
    batched = len(dims) == 2 and not dims[0].HasField("dim_value")
    return tensor.elem_type, dims[1].dim_value if batched and dims[1].HasField("dim_value") else None


def _differences(side: str, found: dict[str, tuple[int, int | None]], wanted: dict[str, tuple[int, int]]) -> list[str]:
    faults = [f"{side} {name!r} is missing" for name in wanted if name not in found]
    faults += [f"{side} {name!r} is not declared" for name in found if name not in wanted]
    for name in sorted(wanted.keys() & found.keys()):
        if found[name] != wanted[name]:
            faults.append(f"{side} {name!r} must be {_told(wanted[name])}; it is {_told(found[name])}")
    return faults


def _told(signature: tuple[int, int | None]) -> str:
    element, width = signature
    kind = TensorProto.DataType.Name(element).lower() if element else "no tensor"
    return f"{kind} of shape (batch, {width})" if width is not None else f"{kind} of another shape than (batch, n)"
