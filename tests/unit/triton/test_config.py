"""config.pbtxt: what is rendered parses as Triton's own schema, and an owner's own must say what the spec says."""

from __future__ import annotations

import fakes_release as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import InvalidInput
from seatrial.spec import Column, Dtype, Serving
from seatrial.triton import config

SPEC = made.spec_of()
TEXT = config.render(SPEC)


def test_the_config_of_a_spec_is_exactly_this_text() -> None:
    assert TEXT == (
        'name: "tea_orders"\n'
        "max_batch_size: 16\n"
        'input {\n  name: "price"\n  data_type: TYPE_FP32\n  dims: 1\n}\n'
        'input {\n  name: "visits"\n  data_type: TYPE_INT64\n  dims: 1\n}\n'
        'input {\n  name: "shop"\n  data_type: TYPE_STRING\n  dims: 1\n}\n'
        'input {\n  name: "member"\n  data_type: TYPE_BOOL\n  dims: 1\n}\n'
        'output {\n  name: "probability"\n  data_type: TYPE_FP32\n  dims: 1\n}\n'
        "instance_group {\n  count: 1\n  kind: KIND_CPU\n}\n"
        "dynamic_batching {\n}\n"
        'backend: "onnxruntime"\n'
    )


@given(
    st.lists(st.sampled_from(["float32", "int64", "string", "bool"]), min_size=1, max_size=6),
    st.integers(1, 4096),
)
def test_what_is_rendered_has_no_fault(dtypes: list[Dtype], batch: int) -> None:
    features = tuple(Column(name=f"f{i}", dtype=dtype) for i, dtype in enumerate(dtypes))
    spec = SPEC.model_copy(
        update={
            "data": SPEC.data.model_copy(update={"features": features}),
            "serving": Serving(max_batch_size=batch),
        }
    )
    assert config.faults(config.render(spec), spec) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('name: "tea_orders"', 'name: "coffee"', "names the model 'coffee'"),
        ('backend: "onnxruntime"', 'backend: "onnx"', "has backend 'onnx'"),
        ('backend: "onnxruntime"', 'platform: "tensorrt_plan"', "has backend ''"),
        ("max_batch_size: 16", "max_batch_size: 0", "max_batch_size 0; model.yaml says 16"),
        ("max_batch_size: 16\n", "", "max_batch_size 0"),
        ("TYPE_INT64", "TYPE_INT32", "'visits' as TYPE_INT32 [1]; model.yaml says TYPE_INT64 [1]"),
        ("TYPE_STRING\n  dims: 1", "TYPE_STRING\n  dims: -1", "'shop' as TYPE_STRING [-1]"),
        ('name: "member"', 'name: "is_member"', "lacks the input 'member'"),
        ('name: "member"', 'name: "is_member"', "has the input 'is_member'"),
        ('name: "member"', 'name: "price"', "has the input 'price' twice"),
        ('name: "probability"', 'name: "chance"', "lacks the output 'probability'"),
        ("KIND_CPU", "KIND_GPU", "no GPU"),
        ("dynamic_batching", "version_policy { specific { versions: [1] } }\ndynamic_batching", "version_policy"),
        (
            'backend: "onnxruntime"',
            'backend: "onnxruntime"\ndefault_model_filename: "m.onnx"',
            "file 'm.onnx'",
        ),
        ("TYPE_FP32", "FP32", "line 5:"),
        ("TYPE_FP32", "TYPE_FLOAT", "line 5:"),
        ("dynamic_batching {", "dynamic_batching [", "line"),
        ("dynamic_batching {", "max_queue_delay: 3\ndynamic_batching {", "max_queue_delay"),
        ("max_batch_size: 16", 'max_batch_size: "16"', "line 2:"),
        ("max_batch_size: 16", "max_batch_size: ${MAX_BATCH}", "line 2: the placeholder '${MAX_BATCH}'"),
        ('name: "tea_orders"', 'name: "{{ model }}"', "line 1: the placeholder '{{ model }}'"),
        ('name: "tea_orders"', 'name: "<MODEL_NAME>"', "line 1: the placeholder"),
    ],
)
def test_a_config_that_serves_something_else_is_told_where(old: str, new: str, fault: str) -> None:
    assert old in TEXT
    found = config.faults(TEXT.replace(old, new, 1), SPEC)
    assert any(fault in line for line in found), found


@pytest.mark.parametrize("text", ["", "{}", '{"name": "tea_orders"}', "}", "\x00"])
def test_what_is_no_config_has_faults(text: str) -> None:
    assert config.faults(text, SPEC)


def test_a_placeholder_in_a_comment_is_no_placeholder() -> None:
    assert config.faults("# made from ${TEMPLATE}\n" + TEXT, SPEC) == []


def test_the_platform_may_stand_for_the_backend() -> None:
    assert config.faults(TEXT.replace('backend: "onnxruntime"', 'platform: "onnxruntime_onnx"'), SPEC) == []


def test_an_owner_may_tune_what_the_spec_does_not_say() -> None:
    tuned = TEXT.replace("dynamic_batching {", "dynamic_batching {\n  preferred_batch_size: [ 8 ]").replace(
        "count: 1", "count: 2"
    )
    assert config.faults(tuned, SPEC) == []


def test_a_text_that_is_no_config_is_the_inputs_fault() -> None:
    with pytest.raises(InvalidInput, match="line 1:"):
        config.parse("name = 3")
