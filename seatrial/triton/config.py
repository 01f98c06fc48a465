"""Triton's model configuration, config.pbtxt: made from a spec, or an owner's own held against it.

Both ways go through Triton's own schema, so what is written here parses there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from google.protobuf import text_format  # type: ignore[import-untyped]
from tritonclient.grpc import model_config_pb2

from seatrial.errors import InvalidInput, shortened
from seatrial.spec import Dtype, Spec

BACKEND: Final = "onnxruntime"
PLATFORM: Final = "onnxruntime_onnx"
TRITON_TYPE: Final[dict[Dtype, str]] = {
    "float32": "TYPE_FP32",
    "int64": "TYPE_INT64",
    "string": "TYPE_STRING",
    "bool": "TYPE_BOOL",
}

_LEFT_OVER = re.compile(r"\$\{[^}]*\}?|\{\{.*?(\}\}|$)|<[A-Z_]{3,}>")
_COMMENT = re.compile(r"#.*")


def render(spec: Spec) -> str:
    """The config.pbtxt of a spec; the same spec gives the same text.

    One tensor per feature, shape (batch, 1); one CPU instance; batches form while a run is under way, without a
    delay of their own.
    """
    config = model_config_pb2.ModelConfig(
        name=spec.model,
        backend=BACKEND,
        max_batch_size=spec.serving.max_batch_size,
        input=[
            model_config_pb2.ModelInput(name=f.name, data_type=TRITON_TYPE[f.dtype], dims=[1])
            for f in spec.data.features
        ],
        output=[
            model_config_pb2.ModelOutput(
                name=spec.serving.output.name, data_type="TYPE_FP32", dims=[spec.serving.output.width]
            )
        ],
        instance_group=[model_config_pb2.ModelInstanceGroup(kind="KIND_CPU", count=1)],
    )
    config.dynamic_batching.SetInParent()
    text: str = text_format.MessageToString(config)
    return text


def parse(text: str) -> Any:  # noqa: ANN401 - generated classes have no types
    """The ModelConfig in `text`.

    Raises:
        InvalidInput: It does not parse by Triton's schema, or a placeholder was left in it; the line is named.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        left_over = _LEFT_OVER.search(_COMMENT.sub("", line))
        if left_over is not None:
            raise InvalidInput(
                f"config.pbtxt line {number}: the placeholder {shortened(left_over.group())!r} was never filled in"
            )
    try:
        return text_format.Parse(text, model_config_pb2.ModelConfig())
    except text_format.ParseError as error:
        raise InvalidInput(f"config.pbtxt line {shortened(error)}") from error


def faults(text: str, spec: Spec) -> list[str]:
    """Where a config.pbtxt does not serve what the spec promises; empty: it does."""
    try:
        config = parse(text)
    except InvalidInput as error:
        return [str(error)]
    return [*_model_faults(config, spec), *_input_faults(config, spec), *_output_faults(config, spec)]


def _model_faults(config: Any, spec: Spec) -> Iterable[str]:  # noqa: ANN401 - generated classes have no types
    if config.name != spec.model:
        yield f"config.pbtxt names the model {config.name!r}; it must be {spec.model!r}, its folder's name"
    if config.backend != BACKEND and not (config.backend == "" and config.platform == PLATFORM):
        yield f"config.pbtxt has backend {config.backend!r}; it must be {BACKEND!r}"
    if config.max_batch_size != spec.serving.max_batch_size:
        yield (
            f"config.pbtxt has max_batch_size {config.max_batch_size}; model.yaml says {spec.serving.max_batch_size}"
        )
    if config.default_model_filename not in {"", "model.onnx"}:
        yield f"config.pbtxt names the file {config.default_model_filename!r}; the bundle holds model.onnx"
    if config.HasField("version_policy"):
        yield "config.pbtxt has a version_policy; an image holds one version, and it is served"
    if config.HasField("ensemble_scheduling"):
        yield "config.pbtxt describes an ensemble; a bundle holds one model"
    kinds = {model_config_pb2.ModelInstanceGroup.Kind.Name(group.kind) for group in config.instance_group}
    if "KIND_GPU" in kinds and spec.serving.resources.gpus == 0:
        yield "config.pbtxt has an instance on KIND_GPU; model.yaml gives serving no GPU (serving.resources.gpus)"


def _input_faults(config: Any, spec: Spec) -> Iterable[str]:  # noqa: ANN401 - generated classes have no types
    wanted = {feature.name: (TRITON_TYPE[feature.dtype], [1]) for feature in spec.data.features}
    yield from _tensor_faults("input", config.input, wanted)


def _output_faults(config: Any, spec: Spec) -> Iterable[str]:  # noqa: ANN401 - generated classes have no types
    output = spec.serving.output
    yield from _tensor_faults("output", config.output, {output.name: ("TYPE_FP32", [output.width])})


def _tensor_faults(side: str, tensors: Any, wanted: dict[str, tuple[str, list[int]]]) -> Iterable[str]:  # noqa: ANN401
    found: dict[str, tuple[str, list[int]]] = {}
    for tensor in tensors:
        if tensor.name in found:
            yield f"config.pbtxt has the {side} {tensor.name!r} twice"
        found[tensor.name] = (model_config_pb2.DataType.Name(tensor.data_type), list(tensor.dims))
    for name in sorted(wanted.keys() - found.keys()):
        yield f"config.pbtxt lacks the {side} {name!r}"
    for name in sorted(found.keys() - wanted.keys()):
        yield f"config.pbtxt has the {side} {name!r}; model.yaml knows only {sorted(wanted)}"
    for name in sorted(found.keys() & wanted.keys()):
        if found[name] != wanted[name]:
            yield (
                f"config.pbtxt has the {side} {name!r} as {found[name][0]} {found[name][1]}; "
                f"model.yaml says {wanted[name][0]} {wanted[name][1]}"
            )
