"""The request schema: what callers may send and will get; and what a new version would break for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tritonclient.grpc import model_config_pb2

from seatrial.triton.config import parse

FREE: Final = -1
"""A dimension of any size."""


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One input or output, without the batch dimension."""

    dtype: str
    """Triton's word, like TYPE_FP32."""
    dims: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a model takes and gives."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    max_batch_size: int
    """Rows in one request; 0: the tensors have no batch dimension of their own."""


def schema_of(config: str) -> Schema:
    """The schema of the model with this config.pbtxt.

    Raises:
        InvalidInput: The text is no configuration.
    """
    parsed = parse(config)
    name = model_config_pb2.DataType.Name
    return Schema(
        inputs={t.name: Tensor(dtype=name(t.data_type), dims=tuple(t.dims), optional=t.optional) for t in parsed.input},
        outputs={t.name: Tensor(dtype=name(t.data_type), dims=tuple(t.dims)) for t in parsed.output},
        max_batch_size=parsed.max_batch_size,
    )


def breaks(old: Schema, new: Schema) -> list[str]:
    """What callers of `old` would run into with `new`; empty: every request of theirs still works.

    Laws: `breaks(x, x) == []`; and when two changes each break nothing, both together break nothing.
    """
    return [*_inputs(old, new), *_outputs(old, new), *_batches(old, new)]


def _inputs(old: Schema, new: Schema) -> Iterable[str]:
    for name, tensor in old.inputs.items():
        if name not in new.inputs:
            yield f"input {name!r} is gone: requests that send it are refused"
            continue
        yield from _changed("input", name, tensor, new.inputs[name])
        if tensor.optional and not new.inputs[name].optional:
            yield f"input {name!r} was optional and is now required"
    for name in sorted(new.inputs.keys() - old.inputs.keys()):
        if not new.inputs[name].optional:
            yield f"input {name!r} is new and required: callers do not send it"


def _outputs(old: Schema, new: Schema) -> Iterable[str]:
    for name, tensor in old.outputs.items():
        if name not in new.outputs:
            yield f"output {name!r} is gone: callers read it"
        else:
            now = new.outputs[name]
            if tensor != now:
                yield f"output {name!r} was {_words(tensor)} and is now {_words(now)}"


def _changed(side: str, name: str, was: Tensor, now: Tensor) -> Iterable[str]:
    """An input may become freer; nothing else."""
    fits = len(was.dims) == len(now.dims) and all(
        after in {before, FREE} for before, after in zip(was.dims, now.dims, strict=True)
    )
    if was.dtype != now.dtype or not fits:
        yield f"{side} {name!r} was {_words(was)} and is now {_words(now)}"


def _batches(old: Schema, new: Schema) -> Iterable[str]:
    if (old.max_batch_size == 0) != (new.max_batch_size == 0):
        yield f"max_batch_size was {old.max_batch_size} and is now {new.max_batch_size}: every shape changes"
    elif new.max_batch_size < old.max_batch_size:
        yield f"max_batch_size was {old.max_batch_size} and is now {new.max_batch_size}: larger requests are refused"


def _words(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.dims)}"
