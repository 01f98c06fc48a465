"""What a new version would break for those who call the old one."""

from __future__ import annotations

import fakes_release as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.triton import config
from seatrial.triton.schema import Schema, Tensor, breaks, schema_of

FP32, INT64 = Tensor(dtype="TYPE_FP32", dims=(1,)), Tensor(dtype="TYPE_INT64", dims=(1,))
OPTIONAL = Tensor(dtype="TYPE_FP32", dims=(1,), optional=True)
FREE = Tensor(dtype="TYPE_FP32", dims=(-1,))
WIDE = Tensor(dtype="TYPE_FP32", dims=(2,))
DEEP = Tensor(dtype="TYPE_FP32", dims=(1, 1))


def schema(inputs: dict[str, Tensor], outputs: dict[str, Tensor] | None = None, batch: int = 8) -> Schema:
    return Schema(inputs=inputs, outputs=outputs or {"y": FP32}, max_batch_size=batch)


OLD = schema({"a": FP32, "b": INT64})

BROKEN = {
    "input gone": (OLD, schema({"a": FP32}), "input 'b' is gone"),
    "input renamed": (OLD, schema({"a": FP32, "c": INT64}), "input 'b' is gone"),
    "input new and required": (OLD, schema({"a": FP32, "b": INT64, "c": FP32}), "'c' is new and required"),
    "input retyped": (OLD, schema({"a": INT64, "b": INT64}), "'a' was TYPE_FP32 [1] and is now TYPE_INT64 [1]"),
    "input wider": (OLD, schema({"a": WIDE, "b": INT64}), "is now TYPE_FP32 [2]"),
    "input deeper": (OLD, schema({"a": DEEP, "b": INT64}), "is now TYPE_FP32 [1, 1]"),
    "input no longer free": (schema({"a": FREE}), schema({"a": FP32}), "was TYPE_FP32 [-1]"),
    "input no longer optional": (schema({"a": OPTIONAL}), schema({"a": FP32}), "was optional"),
    "output gone": (OLD, schema(OLD.inputs, {"z": FP32}), "output 'y' is gone"),
    "output retyped": (OLD, schema(OLD.inputs, {"y": INT64}), "output 'y' was TYPE_FP32"),
    "output freer": (OLD, schema(OLD.inputs, {"y": FREE}), "output 'y' was TYPE_FP32 [1]"),
    "smaller batches": (OLD, schema(OLD.inputs, batch=4), "larger requests are refused"),
    "no batches": (OLD, schema(OLD.inputs, batch=0), "every shape changes"),
    "batches at all": (schema(OLD.inputs, batch=0), OLD, "every shape changes"),
}

FINE = {
    "the same": (OLD, OLD),
    "input new and optional": (OLD, schema({**OLD.inputs, "c": OPTIONAL})),
    "input freer": (OLD, schema({"a": FREE, "b": INT64})),
    "input now optional": (OLD, schema({"a": OPTIONAL, "b": INT64})),
    "output more": (OLD, schema(OLD.inputs, {"y": FP32, "z": INT64})),
    "larger batches": (OLD, schema(OLD.inputs, batch=16)),
    "another order": (OLD, schema({"b": INT64, "a": FP32})),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_breaks_callers_is_told(case: str) -> None:
    old, new, told = BROKEN[case]
    assert any(told in line for line in breaks(old, new)), breaks(old, new)


@pytest.mark.parametrize("case", FINE)
def test_what_callers_do_not_notice_breaks_nothing(case: str) -> None:
    assert breaks(*FINE[case]) == []


def test_a_schema_is_read_from_the_config() -> None:
    found = schema_of(config.render(made.spec_of()))
    assert found.inputs["shop"] == Tensor(dtype="TYPE_STRING", dims=(1,))
    assert found.outputs == {"probability": FP32}
    assert found.max_batch_size == 16


tensors = st.builds(
    Tensor,
    dtype=st.sampled_from(["TYPE_FP32", "TYPE_INT64"]),
    dims=st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=2).map(tuple),
    optional=st.booleans(),
)
named = st.dictionaries(st.sampled_from("abc"), tensors, min_size=1)
schemas = st.builds(Schema, inputs=named, outputs=named, max_batch_size=st.sampled_from([0, 4, 8]))


@given(schemas)
def test_nothing_breaks_its_own_callers(one: Schema) -> None:
    assert breaks(one, one) == []


@st.composite
def grown(draw: st.DrawFn, one: Schema) -> Schema:
    """`one` changed in ways that nobody who calls it should notice."""
    inputs = {
        name: Tensor(
            dtype=tensor.dtype,
            dims=tuple(draw(st.sampled_from([size, -1])) for size in tensor.dims),
            optional=tensor.optional or draw(st.booleans()),
        )
        for name, tensor in one.inputs.items()
    }
    more = draw(st.dictionaries(st.sampled_from("wxyz"), tensors))
    optional = {
        name: Tensor(dtype=tensor.dtype, dims=tensor.dims, optional=True)
        for name, tensor in more.items()
        if name not in inputs
    }
    batch = one.max_batch_size and one.max_batch_size + draw(st.integers(0, 8))
    return Schema(inputs={**inputs, **optional}, outputs={**more, **one.outputs}, max_batch_size=batch)


@given(st.data(), schemas)
def test_growing_once_or_twice_breaks_nothing(data: st.DataObject, one: Schema) -> None:
    two = data.draw(grown(one))
    three = data.draw(grown(two))
    assert breaks(one, two) == breaks(two, three) == breaks(one, three) == []
