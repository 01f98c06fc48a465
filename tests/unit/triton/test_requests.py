"""Rows as requests: what is sent, which rows, and what counts as the same answer."""

from __future__ import annotations

import json
from typing import Any

import fakes_release as made
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from seatrial.adapters import rows as parquet
from seatrial.errors import IntegrityError
from seatrial.ports import Answer
from seatrial.triton import requests, target
from seatrial.triton.requests import Example

SPEC = made.spec_of()
COLUMNS = parquet.columns(made.rows(), SPEC.data.features)


def test_a_request_is_the_open_inference_protocol_in_json() -> None:
    columns: dict[str, Any] = {
        "price": np.array([[0.1]], dtype=np.float32),
        "visits": np.array([[2**53 + 1]], dtype=np.int64),
        "shop": np.array([["söder, 'ö'"]]),
        "member": np.array([[True]]),
    }
    [example] = requests.examples(SPEC, columns, np.array([[0.25]], dtype=np.float32), [0], ["o1"])
    assert json.loads(requests.body(example)) == {
        "id": "o1",
        "inputs": [
            {"name": "price", "shape": [1, 1], "datatype": "FP32", "data": [0.10000000149011612]},
            {"name": "visits", "shape": [1, 1], "datatype": "INT64", "data": [9007199254740993]},
            {"name": "shop", "shape": [1, 1], "datatype": "BYTES", "data": ["söder, 'ö'"]},
            {"name": "member", "shape": [1, 1], "datatype": "BOOL", "data": [True]},
        ],
        "outputs": [{"name": "probability", "parameters": {"binary_data": False}}],
    }
    assert example.answer == {"probability": [0.25]}


def test_rows_that_json_cannot_carry_are_left_out() -> None:
    prices = np.array([[1.0], [np.nan], [np.inf], [2.0]], dtype=np.float32)
    assert requests.sendable({"price": prices, "shop": np.array([["a"]] * 4)}).tolist() == [0, 3]


def test_a_request_of_such_a_row_is_never_written() -> None:
    columns = {**{k: v[:1] for k, v in COLUMNS.items()}, "price": np.array([[np.nan]], dtype=np.float32)}
    [example] = requests.examples(SPEC, columns, np.zeros((1, 1), dtype=np.float32), [0], ["o1"])
    with pytest.raises(ValueError, match="not JSON compliant"):
        requests.body(example)


def test_golden_rows_hold_each_features_least_and_most() -> None:
    golden = requests.golden_rows(COLUMNS)
    fine = requests.sendable(COLUMNS)
    assert golden == sorted(set(golden))
    for values in COLUMNS.values():
        chosen, all_fine = values[golden].ravel().tolist(), values[fine].ravel().tolist()
        assert (min(chosen), max(chosen)) == (min(all_fine), max(all_fine))


def test_many_features_do_not_make_many_golden_rows() -> None:
    random = np.random.default_rng(0)
    wide = {f"f{i}": random.normal(size=(5000, 1)) for i in range(500)}
    assert requests.GOLDEN_ROWS <= len(requests.golden_rows(wide)) <= requests.GOLDEN_EDGES_MAX + 1


def test_few_rows_are_all_golden() -> None:
    assert requests.golden_rows({"a": np.arange(3.0).reshape(-1, 1)}) == [0, 1, 2]
    assert requests.golden_rows({"a": np.empty((0, 1))}) == []


@given(st.integers(0, 500), st.integers(1, 100))
def test_spread_takes_the_first_and_the_last_and_never_more(count: int, most: int) -> None:
    chosen = requests.spread(np.arange(count), most)
    assert len(chosen) == len(set(chosen)) == min(count, most)
    if count and most > 1:
        assert (chosen[0], chosen[-1]) == (0, count - 1)


@given(arrays.arrays(np.float32, (3, 2), elements=st.floats(-1e6, 1e6, width=32)), st.text(max_size=20))
def test_lines_come_back_as_they_went(answers: Any, name: str) -> None:
    columns = {key: values[:3] for key, values in COLUMNS.items()}
    chosen = list(requests.examples(SPEC, columns, answers, range(3), [name, "b", "c"]))
    assert requests.parse(requests.lines(chosen)) == chosen


@pytest.mark.parametrize("text", [b"no json", b"[]", b'{"id": "a"}', b"\xff"])
def test_lines_that_we_did_not_write_are_refused(text: bytes) -> None:
    with pytest.raises(IntegrityError, match="line 1"):
        requests.parse(text)


@pytest.mark.parametrize(
    ("outputs", "apart"),
    [
        ({"y": [0.5, 0.25]}, 0.0),
        ({"y": [0.5, 0.5]}, 0.25),
        ({"y": [0.5]}, float("inf")),
        ({}, float("inf")),
        ({"y": [0.5, float("nan")]}, float("inf")),
        ({"y": [0.5, 0.25], "z": [9.0]}, 0.0),
    ],
)
def test_an_answer_that_is_missing_or_no_number_is_infinitely_far(outputs: Any, apart: float) -> None:
    example = Example(id="a", request={}, answer={"y": [0.5, 0.25]})
    assert example.apart(outputs) == apart


@pytest.mark.parametrize(
    ("ir", "opsets", "told"),
    [
        (8, {"": 17}, None),
        (10, {"": 21, "ai.onnx.ml": 5}, None),
        (11, {"": 17}, "IR 11"),
        (8, {"": 22}, "opset 22"),
        (8, {"": 17, "ai.onnx.ml": 6}, "opset 6 of 'ai.onnx.ml'"),
        (8, {"": 17, "com.acme": 1}, "'com.acme'"),
    ],
)
def test_a_model_newer_than_the_serving_base_is_told(ir: int, opsets: dict[str, int], told: str | None) -> None:
    faults = target.too_new(ir, opsets)
    assert faults == [] if told is None else any(told in fault for fault in faults)


EXAMPLE = Example(id="a", request={}, answer={"p": [0.5]}, tolerance=0.01)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(status=400, version=None, error="bad shape"), "status 400, bad shape"),
        (Answer(status=200, version=1, outputs={"p": [0.5]}), "v1 answered, v2 was asked"),
        (Answer(status=200, version=None, outputs={"p": [0.5]}), "vNone answered"),
        (Answer(status=200, version=2, outputs={"p": [0.52]}), "off the right answer"),
        (Answer(status=200, version=2, outputs={"p": [float("nan")]}), "off the right answer"),
        (Answer(status=200, version=2, outputs={}), "off the right answer"),
        (Answer(status=200, version=2, outputs={"p": [0.5, 0.5]}), "off the right answer"),
    ],
)
def test_a_wrong_answer_is_named(answer: Answer, words: str) -> None:
    assert words in EXAMPLE.fault(answer, 2)


def test_an_answer_within_tolerance_is_right() -> None:
    assert EXAMPLE.fault(Answer(status=200, version=2, outputs={"p": [0.505]}), 2) == ""
