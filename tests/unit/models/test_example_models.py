"""The example models: what their folders hold, and what their code does with a handful of rows."""

from __future__ import annotations

import importlib.util
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import polars as pl
import pytest

from seatrial import spec
from seatrial.adapters import expectations, onnx_reference, rows
from seatrial.adapters.onnx_runtime import OnnxRuntime
from seatrial.spec import Column, Spec, TrainPython
from steps.train_model import logic

MODELS = Path(__file__).resolve().parents[3] / "models"
NAMES = sorted(folder.name for folder in MODELS.iterdir() if (folder / "model.yaml").is_file())
START = datetime(2024, 5, 20, 10, tzinfo=UTC)


def load(model: str, file: str) -> ModuleType:
    """A file of a model's folder, as a module of its own name."""
    wanted = importlib.util.spec_from_file_location(f"{model}_{file}", MODELS / model / f"{file}.py")
    assert wanted is not None
    assert wanted.loader is not None
    module = importlib.util.module_from_spec(wanted)
    wanted.loader.exec_module(module)
    return module


def rows_like(wanted: Spec, count: int = 400) -> pl.DataFrame:
    """Rows as validate_data hands them on, drawn from what the suite allows."""
    random = np.random.default_rng(3)
    suite = expectations.read(MODELS / wanted.model / wanted.data.expectations)
    words = {e["kwargs"]["column"]: e["kwargs"]["value_set"] for e in suite if "value_set" in e["kwargs"]}
    columns: dict[str, Any] = {
        wanted.data.id: [f"row-{i}" for i in range(count)],
        wanted.data.time: [START + timedelta(minutes=i) for i in range(count)],
        wanted.data.label: random.integers(0, 2, count),
    }
    for feature in wanted.data.features:
        columns[feature.name] = (
            random.choice(words.get(feature.name, ["a", "b", "ö, 'c'"]), count)
            if feature.dtype == "string"
            else random.exponential(3, count).astype(np.float32)
        )
    return pl.DataFrame(columns)


def events(*told: tuple[str, str, int, str]) -> pl.DataFrame:
    """Shop events: user, visit, minutes after START, event; sorted as in the raw file."""
    about = {"platform": "mobile", "acquisition_channel": "email", "user_lifecycle": "new"}
    return pl.DataFrame(
        [
            {"user_id": user, "session_id": visit, "event": event, "timestamp": START + timedelta(minutes=at), **about}
            for user, visit, at, event in told
        ]
    )


VISIT = [("u1", "s1", at, event) for at, event in enumerate(["home", "product_view", "search", "add_to_cart"])]


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_holds_a_spec_and_a_suite_over_declared_columns(name: str) -> None:
    wanted = spec.read(MODELS / name)
    declared = {wanted.data.id, wanted.data.time, wanted.data.label, *(f.name for f in wanted.data.features)}
    suite = expectations.read(MODELS / name / wanted.data.expectations)
    assert {e["kwargs"]["column"] for e in suite} <= declared
    assert json.loads((MODELS / name / wanted.data.expectations).read_text())["name"] == name


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_says_origin_licence_and_whether_the_data_is_real(name: str) -> None:
    text = (MODELS / name / "README.md").read_text()
    prepare = load(name, "prepare")
    package, _, version = prepare.PACKAGE.partition("==")
    assert f"`{package}` {version}" in text
    assert ("Synthetic" in text) != ("Real logs" in text)
    assert any(licence in text for licence in ("Apache-2.0", "CC BY 4.0"))


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_is_what_the_spec_says_and_answers_as_the_framework_does(name: str, tmp_path: Path) -> None:
    wanted = spec.read(MODELS / name)
    assert isinstance(wanted.training, TrainPython)
    training = rows_like(wanted)
    trained = load(name, "train").train(training.to_pandas(), dict(wanted.training.parameters), wanted.training.seed)
    model = logic.graph(trained.onnx, wanted)
    assert model.ir_version == 8
    assert {entry.domain: entry.version for entry in model.opset_import} == {"": 17, "ai.onnx.ml": 3}
    (tmp_path / "model.onnx").write_bytes(trained.onnx)
    asked = logic.parity_rows(training, wanted.data, seed=1)
    columns = rows.columns(asked, wanted.data.features)
    own = trained.answer(asked.to_pandas())
    assert np.abs(OnnxRuntime().answers(tmp_path / "model.onnx", columns, "probability") - own).max() <= 1e-5
    assert np.abs(onnx_reference.answers(model, columns, "probability") - own).max() <= 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_training_twice_gives_the_same_file_and_the_same_answers(name: str, tmp_path: Path) -> None:
    wanted = spec.read(MODELS / name)
    assert isinstance(wanted.training, TrainPython)
    training = rows_like(wanted)
    columns = rows.columns(training, wanted.data.features)
    answers = []
    for attempt in ("one", "two"):
        trained = load(name, "train").train(
            training.to_pandas(), dict(wanted.training.parameters), wanted.training.seed
        )
        (tmp_path / attempt).write_bytes(trained.onnx)
        answers.append(OnnxRuntime().answers(tmp_path / attempt, columns, "probability"))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (answers[0] == answers[1]).all()
    assert len(np.unique(answers[0])) > 1


def test_a_visit_is_a_row_as_of_its_first_add_to_cart() -> None:
    told = events(*VISIT, ("u1", "s1", 9, "add_to_cart"), ("u2", "s2", 1, "home"), ("u2", "s2", 2, "product_view"))
    (row,) = load("cart_abandonment", "prepare").visits(told).rows(named=True)
    assert row["visit_id"] == "s1"
    assert row["carted_at"] == START + timedelta(minutes=3)
    assert row["abandoned"] == 1
    assert (row["events_before"], row["product_views"], row["searches"], row["minutes_before"]) == (3, 1, 1, 3)


def test_a_visit_that_pays_later_is_not_abandoned_and_one_that_had_paid_asks_nothing() -> None:
    prepare = load("cart_abandonment", "prepare")
    paid_later, paid_before = ("u1", "s1", 30, "purchase"), ("u1", "s1", 1, "purchase")
    assert prepare.visits(events(*VISIT, paid_later))["abandoned"].to_list() == [0]
    assert prepare.visits(events(VISIT[0], paid_before, *VISIT[2:])).is_empty()


def test_no_feature_of_a_visit_knows_what_comes_after_it() -> None:
    prepare = load("cart_abandonment", "prepare")
    before = [
        ("u1", "s0", -900, "home"), ("u1", "s0", -890, "purchase"), ("u3", "s3", -60, "payment_error"), *VISIT,
    ]  # fmt: skip
    after = [
        ("u1", "s1", 4, "checkout_bug"), ("u1", "s1", 5, "product_view"), ("u1", "s1", 6, "purchase"),
        ("u3", "s3", 7, "payment_error"), ("u1", "s4", 20, "home"), ("u1", "s4", 21, "purchase"),
    ]  # fmt: skip
    known = prepare.visits(events(*before)).drop("abandoned").rows(named=True)
    told = prepare.visits(events(*before, *after)).drop("abandoned").rows(named=True)
    assert known == told
    (row,) = known
    assert (row["incidents_72h"], row["earlier_visits"], row["earlier_purchases"]) == (1, 1, 1)


def test_incidents_count_for_72_hours_and_never_those_of_the_visit_itself() -> None:
    hours_ago = [("u3", f"other-{h}", 3 - 60 * h, "payment_error") for h in (73, 71, 1)]
    own = ("u1", "s1", 2, "checkout_bug")
    (row,) = load("cart_abandonment", "prepare").visits(events(*hours_ago, *VISIT, own)).rows(named=True)
    assert row["incidents_72h"] == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_with_other_content_is_not_used(name: str, tmp_path: Path) -> None:
    prepare = load(name, "prepare")
    (tmp_path / prepare.WHEEL).write_bytes(b"another wheel")
    with pytest.raises(SystemExit, match="must have sha256"):
        prepare.wheel(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_package_index_that_is_away_may_be_asked_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SystemExit) as ended:
        load(name, "prepare").wheel(tmp_path / "cache")
    assert ended.value.code == 75
    assert "could not be downloaded" in capfd.readouterr().err


def test_features_of_the_spec_are_the_columns_that_train_uses() -> None:
    for name in NAMES:
        train = load(name, "train")
        declared = spec.read(MODELS / name).data.features
        assert [*train.NUMBERS, *train.WORDS] == [feature.name for feature in declared]
        assert all(feature == Column(name=feature.name, dtype=feature.dtype) for feature in declared)


def test_the_affinity_is_the_one_to_the_item_shown() -> None:
    log = pl.DataFrame(
        {"item_id": ["1", "0"], "user-item_affinity_0": ["2.0", "3.0"], "user-item_affinity_1": ["4.0", "5.0"]}
    )
    found = log.select(load("click_prediction", "prepare")._affinity(log).alias("affinity"))
    assert found["affinity"].to_list() == [4.0, 3.0]


def test_the_examples_graphs_use_operators_that_a_drill_can_build_on() -> None:
    """A drill's candidate is the champion's graph with a fault on top, and is answered by ONNX's reference."""
    for name in NAMES:
        wanted = spec.read(MODELS / name)
        assert isinstance(wanted.training, TrainPython)
        trained = load(name, "train").train(rows_like(wanted).to_pandas(), dict(wanted.training.parameters), 1)
        operators = {node.op_type for node in onnx.load_model_from_string(trained.onnx).graph.node}
        assert "ZipMap" not in operators
        assert "Loop" not in operators
