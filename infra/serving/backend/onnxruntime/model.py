"""Triton's backend `onnxruntime` in Python, for machines without the C++ one.

Lies at <backend-directory>/onnxruntime/model.py. Triton's core looks for libtriton_onnxruntime.so first and, where
there is none, runs this file through its Python backend: a model repository for the official image loads unchanged.
Checks and messages follow triton-inference-server/onnxruntime_backend, so that a config refused here is refused there.

Differs from the C++ backend on purpose: one bad request does not fail its batch mates. Not supported: ragged batches,
state tensors, accelerators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import triton_python_backend_utils as triton

Tensors = dict[str, tuple[str, list[int]]]
"""Tensor name → Triton's data type and the shape, −1 where it is free."""

Config = Mapping[str, Any]
"""Triton's ModelConfig as JSON."""

DATA_TYPES = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(bfloat16)": "TYPE_BF16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(string)": "TYPE_STRING",
}

GRAPH_LEVELS = {
    -1: ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    0: ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    1: ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
"""Source: onnxruntime_backend README, `optimization { graph { level } }`."""

DEFAULT_MAX_BATCH_SIZE = 4
"""What auto-complete sets. Source: onnxruntime_backend, --backend-config=default-max-batch-size."""

EXECUTION_MODES = {"0": ort.ExecutionMode.ORT_SEQUENTIAL, "1": ort.ExecutionMode.ORT_PARALLEL}


class TritonPythonModel:
    """One instance of one version of a model."""

    @staticmethod
    def auto_complete_config(auto: Any) -> Any:  # noqa: ANN401 - Triton's own type
        """Fill in inputs and outputs that the config leaves out, from the ONNX file."""
        config = auto.as_dict()
        missing = [kind for kind in ("input", "output") if not config[kind]]
        if not missing:
            return auto
        session = _session(config, _artifact(config, triton.get_model_dir()))
        tensors = {"input": _tensors(session.get_inputs()), "output": _tensors(session.get_outputs())}
        batch = _complete_batching(auto, config, tensors)
        for kind in missing:
            _complete_tensors(auto, kind, tensors[kind], batched=batch > 0)
        return auto

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the ONNX file and refuse it where the config says something else."""
        config = json.loads(args["model_config"])
        if int(np.__version__.split(".")[0]) >= 2:
            # The 24.10 stub was built before numpy 2: answers would be wrong without any error.
            raise triton.TritonModelException(f"this stub needs numpy < 2; found {np.__version__}")
        self.max_batch_size = int(config.get("max_batch_size", 0))
        self.session = _session(config, _artifact(config, triton.get_model_dir()))
        _validate(config, self.session)
        self.inputs = {io["name"]: io["data_type"] for io in config["input"]}
        self.outputs = [io["name"] for io in config["output"]]

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer every request; together where they can be, else one by one."""
        feeds = [self._feed(request) for request in requests]
        if self.max_batch_size > 0 and len(requests) > 1:
            try:
                return self._run_together(requests, feeds)
            except Exception:  # noqa: BLE001, S110 - whatever it was: a bad request must not fail its batch mates
                pass
        return [
            self._run_alone(request, feed, alone=len(requests) == 1)
            for request, feed in zip(requests, feeds, strict=True)
        ]

    def _feed(self, request: Any) -> dict[str, np.ndarray[Any, Any]]:  # noqa: ANN401
        feed = {}
        for name, data_type in self.inputs.items():
            tensor = triton.get_input_tensor_by_name(request, name)
            if tensor is not None:
                array = tensor.as_numpy()
                feed[name] = _decoded(array) if data_type == "TYPE_STRING" else array
        return feed

    def _run_together(self, requests: Sequence[Any], feeds: Sequence[dict[str, Any]]) -> list[Any]:
        asked = {name for request in requests for name in request.requested_output_names()}
        wanted = [name for name in self.outputs if name in asked]
        merged = {name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]}
        results = dict(zip(wanted, self.session.run(wanted, merged), strict=True))
        ends = np.cumsum([next(iter(feed.values())).shape[0] for feed in feeds])
        starts = [0, *ends[:-1]]
        return [
            _response(request, {name: array[start:end] for name, array in results.items()})
            for request, start, end in zip(requests, starts, ends, strict=True)
        ]

    def _run_alone(self, request: Any, feed: dict[str, Any], *, alone: bool) -> Any:  # noqa: ANN401
        wanted = [name for name in self.outputs if name in request.requested_output_names()]
        try:
            return _response(request, dict(zip(wanted, self.session.run(wanted, feed), strict=True)))
        except Exception as error:
            message = f"onnx runtime error {error}"
            if alone:  # only a raise is counted as a failure by Triton. Source: triton-inference-server/server#7713
                raise triton.TritonModelException(message) from error
            return triton.InferenceResponse(error=triton.TritonError(message))


def _response(request: Any, results: Mapping[str, np.ndarray[Any, Any]]) -> Any:  # noqa: ANN401
    asked = request.requested_output_names()
    return triton.InferenceResponse([_tensor(name, array) for name, array in results.items() if name in asked])


def _tensor(name: str, array: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401
    array = np.ascontiguousarray(array)
    if array.dtype.kind in "USO":
        encoded = [text.encode() if isinstance(text, str) else text for text in array.ravel()]
        array = np.array(encoded, dtype=object).reshape(array.shape)
    return triton.Tensor(name, array)


def _decoded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    texts = [item.decode() if isinstance(item, bytes) else item for item in array.ravel()]
    return np.array(texts, dtype=object).reshape(array.shape)


def _artifact(config: Config, version_directory: str) -> Path:
    path = Path(version_directory) / (config.get("default_model_filename") or "model.onnx")
    path = path / "model.onnx" if path.is_dir() else path
    if not path.is_file():
        raise triton.TritonModelException(f"unable to find '{path}' for model instance '{config.get('name', '')}'")
    return path


def _parameter(config: Config, key: str, default: str) -> str:
    entry = config.get("parameters", {}).get(key)
    return default if entry is None else str(entry.get("string_value", default))


def _session(config: Config, path: Path) -> ort.InferenceSession:
    try:
        return ort.InferenceSession(str(path), _options(config), providers=["CPUExecutionProvider"])
    except triton.TritonModelException:
        raise
    except Exception as error:  # InvalidGraph, NotImplemented, Fail, …
        raise triton.TritonModelException(f"onnx runtime error {error}") from error


def _options(config: Config) -> ort.SessionOptions:
    optimization = config.get("optimization", {})
    for accelerator in (optimization.get("execution_accelerators") or {}).get("cpu_execution_accelerator", []):
        if accelerator.get("name") != "openvino":  # the official image has it; here it is taken and not used
            raise triton.TritonModelException(f"unknown Execution Accelerator '{accelerator.get('name')}' is requested")
    mode = _parameter(config, "execution_mode", "0")
    if mode not in EXECUTION_MODES:
        raise triton.TritonModelException(
            f"Invalid configuration value provided. Expected values for execution_mode are 0 or 1 but got {mode} ."
        )
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(_parameter(config, "intra_op_thread_count", "0"))
    options.inter_op_num_threads = int(_parameter(config, "inter_op_thread_count", "0"))
    options.execution_mode = EXECUTION_MODES[mode]
    options.enable_cpu_mem_arena = _parameter(config, "enable_mem_arena", "1") == "1"
    options.enable_mem_pattern = _parameter(config, "enable_mem_pattern", "1") == "1"
    options.graph_optimization_level = GRAPH_LEVELS.get(
        int(optimization.get("graph", {}).get("level", 0) or 0), ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    )
    return options


def _tensors(nodes: Sequence[Any]) -> Tensors:
    found: Tensors = {}
    for node in nodes:
        if not node.type.startswith("tensor("):
            kind = node.type.split("(", 1)[0].upper().replace("SEQ", "SEQUENCE")
            raise triton.TritonModelException(
                f"Unsupported ONNX Type 'ONNX_TYPE_{kind}' for I/O '{node.name}', expected 'ONNX_TYPE_TENSOR'."
            )
        shape = [size if isinstance(size, int) and size >= 0 else -1 for size in (node.shape or [])]
        found[node.name] = (DATA_TYPES.get(node.type, "TYPE_INVALID"), shape)
    return found


def _complete_batching(auto: Any, config: Config, tensors: Mapping[str, Tensors]) -> int:  # noqa: ANN401
    """Set batching where every tensor's first dimension is free; give back the largest batch, 0 for none."""
    batchable = all(shape and shape[0] == -1 for table in tensors.values() for _, shape in table.values())
    batch = int(config["max_batch_size"])
    if not batchable and batch:
        raise triton.TritonModelException(
            f"autofill failed for model '{config['name']}': model does not support batching while non-zero "
            "max_batch_size is specified"
        )
    if not batchable:
        return 0
    if batch == 0:
        batch = DEFAULT_MAX_BATCH_SIZE
        auto.set_max_batch_size(batch)
    if batch > 1 and "sequence_batching" not in config and "dynamic_batching" not in config:
        auto.set_dynamic_batching()
    return batch


def _complete_tensors(auto: Any, kind: str, table: Tensors, *, batched: bool) -> None:  # noqa: ANN401
    add = auto.add_input if kind == "input" else auto.add_output
    for name, (data_type, shape) in sorted(table.items()):
        dims = shape[1:] if batched else shape
        add({"name": name, "data_type": data_type, "dims": dims or [1]})
        if batched and not dims:  # labels of shape [N]; add_output() itself refuses `reshape`
            auto._model_config[kind][-1]["reshape"] = {"shape": []}  # noqa: SLF001


def _validate(config: Config, session: ort.InferenceSession) -> None:
    """Raise where the config's tensors are not the model's."""
    inputs, outputs = _tensors(session.get_inputs()), _tensors(session.get_outputs())
    if len(inputs) != len(config["input"]):
        raise triton.TritonModelException(
            f"unable to load model '{config['name']}', configuration expects {len(config['input'])} inputs, "
            f"model provides {len(inputs)}"
        )
    allowed = inputs | _tensors(session.get_overridable_initializers())
    for tensor in config["input"]:
        _validate_tensor(config, "input", tensor, allowed)
    for tensor in config["output"]:
        _validate_tensor(config, "output", tensor, outputs)


def _validate_tensor(config: Config, kind: str, tensor: Config, table: Tensors) -> None:
    model, name, batch = config["name"], tensor["name"], int(config.get("max_batch_size", 0))
    if kind == "input" and tensor.get("optional") and batch:
        raise triton.TritonModelException(
            f"unable to load model '{model}', optional input '{name}' is not supported for models that support batching"
        )
    if name not in table:
        raise triton.TritonModelException(
            f"unexpected inference {kind} '{name}', allowed {kind}s are: " + ", ".join(sorted(table))
        )
    data_type, shape = table[name]
    if tensor["data_type"] != data_type:
        raise triton.TritonModelException(
            f"unable to load model '{model}', configuration expects datatype {tensor['data_type']} for {kind} "
            f"'{name}', model provides {data_type}"
        )
    if tensor.get("allow_ragged_batch"):
        raise triton.TritonModelException(
            f"unable to load model '{model}', ragged input '{name}' is not supported here"
        )
    if shape:
        _validate_dims(f"model '{model}', tensor '{name}'", tensor, shape, batch=batch, exact=kind == "output")


def _validate_dims(where: str, tensor: Config, shape: list[int], *, batch: int, exact: bool) -> None:
    """Inputs may be narrower in the config than in the model; outputs must match. Source: onnxruntime_backend#165."""
    if batch and shape[0] != -1:
        raise triton.TritonModelException(
            f"{where}: for the model to support batching the shape should have at least 1 dimension and the first "
            f"dimension must be -1; but shape expected by the model is {_text(shape)}"
        )
    dims = [int(size) for size in (tensor["reshape"]["shape"] if tensor.get("reshape") else tensor["dims"])]
    full = [-1, *dims] if batch else dims
    same = len(shape) == len(full) and all(
        theirs == ours for theirs, ours in zip(shape, full, strict=True) if exact or theirs != -1
    )
    if not same:
        note = (
            "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making "
            f"complete shape {_text(full)}"
            if batch
            else f"shape {_text(full)}"
        )
        raise triton.TritonModelException(
            f"{where}: the model expects {len(shape)} dimensions (shape {_text(shape)}) but the model configuration "
            f"specifies {len(full)} dimensions ({note})"
        )


def _text(shape: Sequence[int]) -> str:
    return "[" + ",".join(str(size) for size in shape) + "]"
