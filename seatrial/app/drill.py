"""A drill's candidate: an ordinary model folder (`train: onnx`) that passes every gate and then does harm.

errors        answers as the champion does, bit by bit; a batch with a marked row in it fails at run time
never_ready   the champion's graph, with a node selector that no node satisfies
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper

from seatrial.adapters.onnx_runtime import OnnxRuntime
from seatrial.errors import InvalidInput, shortened
from seatrial.spec import SPEC_FILE, Column, Spec
from seatrial.triton import requests
from seatrial.triton.requests import Example

Fault = Literal["errors", "never_ready"]

MARKERS: Final[dict[str, float]] = {"float32": -987_654.0, "int64": -987_654_321}
"""Values that no row has; both are exact in their type."""
NOWHERE: Final = {"seatrial.dev/drill": "no-such-node"}
READY_WITHIN_S: Final = 20.0
"""A drill need not wait as long as a real candidate may."""
NOTE: Final = "seatrial.drill"
"""Metadata property that makes the model file differ from the champion's, whatever the fault."""
PREFIX: Final = "seatrial_drill_"


@dataclass(frozen=True, kw_only=True)
class Marker:
    """The feature and the value that set the fault off."""

    feature: str
    dtype: str
    value: float | int


@dataclass(frozen=True, kw_only=True)
class Drill:
    """What was written."""

    fault: Fault
    folder: Path
    """Bears the model's name; holds model.yaml, model.onnx and the expectations."""
    spec: Spec
    marker: Marker | None
    """None: the fault needs none."""


def drill_source(champion_onnx: bytes, spec: Spec, fault: str, into: Path, *, source: Path) -> Drill:
    """Write the folder of a candidate that has `fault` to `into`/<model name>.

    Args:
        champion_onnx: The champion's model.onnx.
        spec: The champion's spec.
        fault: errors or never_ready.
        into: A folder that may not hold the model's name yet.
        source: The model's own folder, for its expectations.

    Raises:
        InvalidInput: No such fault, no feature that can carry a marker, or not an ONNX model.
    """
    if fault not in get_args(Fault):
        raise InvalidInput(f"a drill's fault is one of {', '.join(get_args(Fault))}; got {shortened(repr(fault))}")
    known: Fault = "errors" if fault == "errors" else "never_ready"
    marker = marker_of(spec) if known == "errors" else None
    model = _model(champion_onnx)
    if marker is not None:
        _fail_on(model, marker, spec)
    helper.set_model_props(model, {**{p.key: p.value for p in model.metadata_props}, NOTE: known})
    drilled = _spec(spec, known)
    folder = into / spec.model
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(_checked(model))
    text = yaml.safe_dump(drilled.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    (folder / SPEC_FILE).write_text(text, encoding="utf-8")
    expectations = folder / spec.data.expectations
    expectations.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / spec.data.expectations, expectations)
    return Drill(fault=known, folder=folder, spec=drilled, marker=marker)


def marker_of(spec: Spec) -> Marker:
    """The first float32 feature, else the first int64 one, and its marker value.

    Raises:
        InvalidInput: The model has neither.
    """
    for dtype, value in MARKERS.items():
        for feature in spec.data.features:
            if feature.dtype == dtype:
                return Marker(feature=feature.name, dtype=dtype, value=value)
    raise InvalidInput(f"a drill marks requests by a number; {spec.model} has no float32 or int64 feature")


def marked_requests(champion_onnx: bytes, replay_lines: bytes, spec: Spec, marker: Marker) -> bytes:
    """The replay's requests with the marker in them, and the champion's answers to that, as JSON lines.

    Raises:
        InvalidInput: The champion cannot answer a marked request.
    """
    examples = [_marked(example, marker) for example in requests.parse(replay_lines)]
    if not examples:
        raise InvalidInput(f"{spec.model} keeps no replay requests: there is nothing to mark")
    columns = {feature.name: _column(examples, feature) for feature in spec.data.features}
    output = spec.serving.output.name
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(champion_onnx)
        answers = OnnxRuntime().answers(path, columns, output)
    right = (
        replace(example, answer={output: [float(value) for value in row]})
        for example, row in zip(examples, answers, strict=True)
    )
    return requests.lines(right)


def _marked(example: Example, marker: Marker) -> Example:
    request = json.loads(json.dumps(example.request))
    for tensor in request["inputs"]:
        if tensor["name"] == marker.feature:
            tensor["data"] = [marker.value]
    return replace(example, request=request)


def _column(examples: list[Example], feature: Column) -> NDArray[Any]:
    """Values of one feature, shape (rows, 1)."""
    values = [t["data"][0] for e in examples for t in e.request["inputs"] if t["name"] == feature.name]
    kind: Any = {"float32": np.float32, "int64": np.int64, "bool": np.bool_, "string": object}[feature.dtype]
    return np.array(values, dtype=kind).reshape(-1, 1)


def _spec(spec: Spec, fault: Fault) -> Spec:
    data = spec.model_dump(mode="json")
    data["training"] = {"kind": "onnx", "file": "model.onnx"}
    if fault == "never_ready":
        data["serving"]["resources"]["node_selector"] = NOWHERE
        data["serving"]["ready_within_s"] = min(spec.serving.ready_within_s, READY_WITHIN_S)
    return Spec.model_validate_json(json.dumps(data))


def _model(champion_onnx: bytes) -> onnx.ModelProto:
    try:
        return onnx.load_model_from_string(champion_onnx)
    except Exception as error:  # protobuf's own exceptions share no public type
        raise InvalidInput(f"the champion's model is no ONNX file: {shortened(error)}") from error


def _checked(model: onnx.ModelProto) -> bytes:
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def _fail_on(model: onnx.ModelProto, marker: Marker, spec: Spec) -> None:
    """Make the graph fail at run time on a batch that holds the marker.

    The output is reshaped to its own shape, [0, width] with 0 for "as it is"; that shape is row 0 of a table with one
    row, and the row number is how many marked rows there are. So answers stay the same bit by bit, no optimizer can
    take the guard away, and a marked row is looked up outside the table: ONNX Runtime refuses the whole batch.
    """
    output, graph = spec.serving.output, model.graph
    if marker.feature not in {entry.name for entry in graph.input}:
        raise InvalidInput(f"the champion's model does not take the feature {marker.feature!r}")
    inner = f"{PREFIX}answer"
    _rename(graph, output.name, inner)
    kind = TensorProto.FLOAT if marker.dtype == "float32" else TensorProto.INT64
    graph.initializer.extend(
        [
            helper.make_tensor(f"{PREFIX}marker", kind, [1], [marker.value]),
            helper.make_tensor(f"{PREFIX}shapes", TensorProto.INT64, [1, 2], [0, output.width]),
        ]
    )
    names = {step: f"{PREFIX}{step}" for step in ("hit", "one", "count", "shape")}
    graph.node.extend(
        [
            helper.make_node("Equal", [marker.feature, f"{PREFIX}marker"], [names["hit"]]),
            helper.make_node("Cast", [names["hit"]], [names["one"]], to=TensorProto.INT64),
            helper.make_node("ReduceSum", [names["one"]], [names["count"]], keepdims=0),
            helper.make_node("Gather", [f"{PREFIX}shapes", names["count"]], [names["shape"]], axis=0),
            helper.make_node("Reshape", [inner, names["shape"]], [output.name]),
        ]
    )


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Call a tensor otherwise, where it is made and where it is used."""
    made = False
    for node in graph.node:
        made = made or old in node.output
        node.output[:] = [new if name == old else name for name in node.output]
        for user in _with_inner(node):
            user.input[:] = [new if name == old else name for name in user.input]
    if not made:
        raise InvalidInput(f"the champion's model does not compute its output {old!r}")


def _with_inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The node and those of the graphs within it, which may use its surroundings' tensors."""
    yield node
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _with_inner(inner)
