"""A spec is read whole or refused, every fault by its path."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import fakes_release as made
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seatrial import spec
from seatrial.errors import InvalidInput, StepError


def changed(path: str, value: Any) -> str:
    """The spec's YAML with one value put in; `del` takes one out."""
    data = copy.deepcopy(made.spec_data())
    *folders, last = path.split(".")
    place: Any = data
    for folder in folders:
        place = place[int(folder) if folder.isdigit() else folder]
    key = int(last) if last.isdigit() else last
    if value == "del":
        del place[key]
    else:
        place[key] = value
    return yaml.safe_dump(data)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("modell", "x", "modell: Extra inputs"),
        ("data.time_zone", "UTC", "data.time_zone: Extra inputs"),
        ("data.features.0.size", 3, "data.features.0.size: Extra inputs"),
        ("owner", "del", "owner: Field required"),
        ("data.label", "del", "data.label: Field required"),
        ("owner", 3, "owner: Input should be a valid string; got 3"),
        ("owner", "", "owner:"),
        ("data.rows.min", "10", "data.rows.min: Input should be a valid integer; got '10'"),
        ("data.rows.min", 10.5, "data.rows.min:"),
        ("data.rows.min", True, "data.rows.min:"),
        ("data.rows.min", 0, "data.rows.min:"),
        ("data.rows.max", 5, "rows.min must be at most rows.max; got 10 > 5"),
        ("data.features", [], "data.features:"),
        ("data.features.0.dtype", "float64", "data.features.0.dtype:"),
        ("data.features.0.name", "a b", "data.features.0.name:"),
        ("data.features.0.name", "visits", "named twice: ['visits']"),
        ("data.id", "price", "named twice: ['price']"),
        ("data.holdout_share", 1.0, "data.holdout_share:"),
        ("data.holdout_share", 0, "data.holdout_share:"),
        ("data.expectations", "../x.json", "data.expectations:"),
        ("data.expectations", "/etc/passwd", "data.expectations:"),
        ("data.expectations", "a/../../x", "data.expectations:"),
        ("training.kind", "r", "training:"),
        ("training.seed", -1, "training.python.seed:"),
        ("evaluation.floors", [], "evaluation.floors:"),
        ("evaluation.floors.0.at_least", 0.1, "needs exactly one of at_least and at_most"),
        ("evaluation.primary.margin", 0, "evaluation.primary.margin:"),
        ("evaluation.primary.metric", "auc", "evaluation.primary.metric:"),
        ("evaluation.alpha", 0.5, "evaluation.alpha:"),
        ("serving.max_batch_size", 0, "serving.max_batch_size:"),
        ("serving.resources", {"memory": "1 GB"}, "serving.resources.memory:"),
        ("canary.steps", [], "canary.steps:"),
        ("canary.steps.0.weight", 100, "canary.steps.0.weight:"),
        ("canary.steps.0.min_s", 20, "min_s must be at most its max_s"),
        ("canary.steps", [{"weight": w, "min_s": 1, "max_s": 2} for w in (50, 5)], "must rise; got [50, 5]"),
        ("canary.ratio_max", [1.2], "every ratio_max must be over ratio_tolerated"),
        ("model", "../x", "model:"),
        ("model", "A b", "model:"),
        ("model", "a" * 31, "model:"),
        ("evaluation.draws", float("inf"), "neither text, number, list nor mapping"),
        ("evaluation.primary.margin", float("nan"), "neither text, number, list nor mapping"),
    ],
)
def test_a_fault_is_told_with_its_path(path: str, value: Any, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        spec.parse(changed(path, value))
    assert told in str(caught.value)
    assert str(caught.value).startswith("model.yaml")


def test_every_fault_is_told_at_once() -> None:
    data = yaml.safe_load(changed("owner", 3))
    data["data"]["rows"]["min"] = 0
    with pytest.raises(InvalidInput, match=r"owner: .*; data\.rows\.min: "):
        spec.parse(yaml.safe_dump(data))


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must hold a mapping"),
        ("# nothing\n", "must hold a mapping"),
        ("just text", "must hold a mapping"),
        ("- a\n- b\n", "must hold a mapping"),
        ("model: a\nmodel: b\n", "line 2: key 'model' stands twice"),
        ("data:\n  id: a\n  id: b\n", "line 3: key 'id' stands twice"),
        ("a: &x 1\nb: *x\n", "line 2: YAML aliases are not allowed"),
        ("base: &x {a: 1}\nb:\n  <<: *x\n", "aliases are not allowed"),
        (BOMB, "aliases are not allowed"),
        ("a: [1, 2\n", "is not YAML"),
        ("a: b: c\n", "is not YAML"),
        ("\tmodel: a\n", "is not YAML"),
        ("model: !!python/object/apply:os.system ['true']\n", "is not YAML"),
        ("model: a\n---\nmodel: b\n", "is not YAML"),
        ("? [a, b]\n: c\n", "line 1: a key is text"),
        ("? {a: b}\n: c\n", "line 1: a key is text"),
        ("a: " + "[" * 5000, "is not YAML"),
        ("a: " + "[" * 600 + "]" * 600, "model.yaml"),
        ("model: \x00", "is not YAML"),
        ("when: 2026-01-01\n", "neither text, number, list nor mapping"),
        ("s: !!set {a, b}\n", "neither text, number, list nor mapping"),
        ("b: !!binary aGk=\n", "neither text, number, list nor mapping"),
        ("1: a\n", "line 1: a key is text; got 1"),
        ("2026-01-01: a\n", "a key is text"),
        ("a: 1\n~: a\n", "line 2: a key is text; got None"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 1\n", "run `git lfs pull`"),
    ],
)
def test_what_is_no_spec_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        spec.parse(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_huge_file_is_refused_before_it_is_read_as_yaml() -> None:
    started = time.process_time()
    with pytest.raises(InvalidInput, match=r"at most 262144 bytes; got 300"):
        spec.parse("# " + "x" * 3_000_000)
    assert time.process_time() - started < 1


@given(st.text(max_size=80))
def test_no_text_crashes_the_reader(text: str) -> None:
    with pytest.raises(StepError):
        spec.parse(text)


def write(folder: Path, data: bytes) -> Path:
    folder.mkdir()
    (folder / "model.yaml").write_bytes(data)
    return folder


def test_a_folder_must_bear_its_models_name(tmp_path: Path) -> None:
    text = yaml.safe_dump(made.spec_data()).encode()
    assert spec.read(write(tmp_path / "tea_orders", text)).model == "tea_orders"
    with pytest.raises(InvalidInput, match="must say its folder's name"):
        spec.read(write(tmp_path / "coffee", text))


def test_a_folder_without_a_spec_is_told_what_a_model_is(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=r"empty has no model\.yaml: a model is a folder"):
        spec.read(tmp_path / "empty")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"model: \xe9"])
def test_a_file_that_is_no_utf_8_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="cannot be read as UTF-8"):
        spec.read(write(tmp_path / "tea_orders", data))


def test_a_folder_in_the_specs_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tea" / "model.yaml").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="cannot be read"):
        spec.read(tmp_path / "tea")


def test_the_digest_goes_by_content_not_by_spelling() -> None:
    data = made.spec_data()
    text = yaml.safe_dump(data, sort_keys=False)
    other = "# a comment\n" + yaml.safe_dump(dict(reversed(data.items())), sort_keys=False).replace("0.02", "2.0e-2")
    assert spec.parse(text).digest == spec.parse(other).digest


@pytest.mark.parametrize(
    ("path", "value", "policy_changes"),
    [("owner", "others", False), ("training.seed", 7, False), ("evaluation.alpha", 0.01, True)],
)
def test_the_policy_digest_covers_what_the_gates_judge_by(path: str, value: Any, *, policy_changes: bool) -> None:
    before, after = spec.parse(yaml.safe_dump(made.spec_data())), spec.parse(changed(path, value))
    assert before.digest != after.digest
    assert (before.policy_digest != after.policy_digest) == policy_changes


def test_a_spec_cannot_be_changed_once_read() -> None:
    with pytest.raises(ValueError, match="frozen"):
        made.spec_of().owner = "eve"  # type: ignore[misc]
