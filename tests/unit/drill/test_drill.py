"""The drill's candidate: harmless on ordinary rows, harmful on a marked one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fakes_release as made
import numpy as np
import onnx
import onnxruntime
import pytest
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper

from seatrial import spec as specs
from seatrial.app.drill import Drill, drill_source, marked_requests, marker_of
from seatrial.errors import InvalidInput
from seatrial.spec import Column, Spec
from seatrial.triton import requests

CHAMPION = made.onnx_model()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "expectations.json").write_text('{"name": "tea"}')
    return folder


def drilled(source: Path, fault: str = "errors", champion: bytes = CHAMPION, spec: Spec | None = None) -> Drill:
    return drill_source(champion, spec or made.spec_of(), fault, source.parent / "into", source=source)


def feeds(count: int = 64) -> dict[str, NDArray[Any]]:
    frame = made.rows(count)
    return {
        "price": frame["price"].fill_null(float("nan")).to_numpy().reshape(-1, 1).copy(),
        "visits": frame["visits"].to_numpy().reshape(-1, 1).copy(),
        "shop": np.array(frame["shop"].to_list(), dtype=object).reshape(-1, 1),
        "member": frame["member"].to_numpy().reshape(-1, 1),
    }


def answers(model: bytes, given: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    wanted = {entry.name for entry in session.get_inputs()}
    found: NDArray[np.float32] = session.run(None, {k: v for k, v in given.items() if k in wanted})[0]
    return found


def test_ordinary_rows_get_the_champions_answers_bit_by_bit(source: Path) -> None:
    candidate = (drilled(source).folder / "model.onnx").read_bytes()
    assert candidate != CHAMPION
    for count in (1, 2, 64):
        given = feeds(count)
        assert answers(candidate, given).tobytes() == answers(CHAMPION, given).tobytes()


@pytest.mark.parametrize("place", [0, 31, 63])
def test_a_batch_with_a_marked_row_fails_at_run_time(source: Path, place: int) -> None:
    drill = drilled(source)
    assert drill.marker is not None
    given = feeds()
    given["price"][place, 0] = drill.marker.value
    with pytest.raises(Exception, match="Gather"):
        answers((drill.folder / "model.onnx").read_bytes(), given)
    assert len(answers(CHAMPION, given)) == 64


def test_two_marked_rows_fail_as_well(source: Path) -> None:
    given = feeds(4)
    given["price"][:] = -987_654.0
    with pytest.raises(Exception, match="Gather"):
        answers((drilled(source).folder / "model.onnx").read_bytes(), given)


def test_opset_and_ir_stay_as_they_are(source: Path) -> None:
    found = onnx.load(drilled(source).folder / "model.onnx")
    assert (found.ir_version, {o.domain: o.version for o in found.opset_import}) == (8, {"": 17, "ai.onnx.ml": 3})


def test_the_folder_is_an_ordinary_model_of_the_kind_onnx(source: Path) -> None:
    drill = drilled(source)
    assert sorted(p.name for p in drill.folder.iterdir()) == ["expectations.json", "model.onnx", "model.yaml"]
    read = specs.read(drill.folder)
    assert read == drill.spec
    assert read.training.kind == "onnx"
    before, after = (s.model_dump(exclude={"training"}) for s in (made.spec_of(), read))
    assert before == after
    assert (drill.folder / "expectations.json").read_text() == '{"name": "tea"}'


def test_never_ready_asks_for_a_node_that_is_nowhere_and_serves_the_same_graph(source: Path) -> None:
    drill = drilled(source, "never_ready")
    assert drill.marker is None
    raw = yaml.safe_load((drill.folder / "model.yaml").read_text())
    assert raw["serving"]["resources"]["node_selector"] == {"seatrial.dev/drill": "no-such-node"}
    candidate = (drill.folder / "model.onnx").read_bytes()
    assert candidate != CHAMPION
    given = feeds()
    given["price"][3, 0] = -987_654.0
    assert answers(candidate, given).tobytes() == answers(CHAMPION, given).tobytes()


def without(*dtypes: str) -> Spec:
    spec = made.spec_of()
    kept = tuple(f for f in spec.data.features if f.dtype not in dtypes) or (Column(name="shop", dtype="string"),)
    return spec.model_copy(update={"data": spec.data.model_copy(update={"features": kept})})


def test_without_a_float_feature_an_integer_is_marked(source: Path) -> None:
    drill = drilled(source, spec=without("float32"))
    assert drill.marker is not None
    assert (drill.marker.feature, drill.marker.value) == ("visits", -987_654_321)
    given = feeds(8)
    candidate = (drill.folder / "model.onnx").read_bytes()
    assert answers(candidate, given).tobytes() == answers(CHAMPION, given).tobytes()
    given["visits"][2, 0] = drill.marker.value
    with pytest.raises(Exception, match="Gather"):
        answers(candidate, given)


def test_without_a_number_there_is_no_such_drill() -> None:
    with pytest.raises(InvalidInput, match="no float32 or int64 feature"):
        marker_of(without("float32", "int64"))


def test_an_unknown_fault_a_broken_model_and_a_constant_one_are_refused(source: Path) -> None:
    with pytest.raises(InvalidInput, match="errors, never_ready"):
        drilled(source, "slow")
    with pytest.raises(InvalidInput, match="no ONNX file"):
        drilled(source, champion=b"not a model")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [], "empty", [info("price", TensorProto.FLOAT, [None, 1])], [info("price", TensorProto.FLOAT, [None, 1])]
    )
    passing_on = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(InvalidInput, match="does not compute its output"):
        drilled(source, champion=passing_on.SerializeToString())


def test_marked_requests_hold_the_marker_and_the_champions_answers_to_it() -> None:
    spec, given = made.spec_of(), feeds(20)
    given["price"] = np.nan_to_num(given["price"])
    right = answers(CHAMPION, given)
    names = [f"r{i}" for i in range(20)]
    columns = {**given, "shop": given["shop"].astype(np.str_)}
    lines = requests.lines(requests.examples(spec, columns, right, range(20), names))
    marker = marker_of(spec)
    marked = requests.parse(marked_requests(CHAMPION, lines, spec, marker))
    given["price"][:] = marker.value
    wanted = answers(CHAMPION, given)
    assert [e.id for e in marked] == names
    assert [e.answer["probability"] for e in marked] == wanted.tolist()
    for example in marked:
        prices = [t["data"] for t in example.request["inputs"] if t["name"] == "price"]
        assert prices == [[-987_654.0]]
    assert json.loads(lines.splitlines()[0])["request"] != marked[0].request


def test_nothing_to_mark_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to mark"):
        marked_requests(CHAMPION, b"", made.spec_of(), marker_of(made.spec_of()))
