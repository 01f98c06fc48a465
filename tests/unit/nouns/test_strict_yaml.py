"""What stands in a model.yaml is what is read: nothing that one reader of YAML takes for something else."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial import spec, strict_yaml
from seatrial.errors import InvalidInput

READ_APART = "010 -017 0b101 1_000 1:30 190:20:30 1:30.5 1_0.5 0x1F yes No on OFF"


@pytest.mark.parametrize("text", READ_APART.split())
def test_what_readers_disagree_on_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"line 2: .* is one thing to some readers of YAML and another to others"):
        strict_yaml.load(f"a: 1\nb: {text}\n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10), ("-3", -3), ("+3", 3), ("0", 0), ("0.5", 0.5), (".5", 0.5), ("2.0e-2", 0.02), ("1.", 1.0),
        ("1e-5", 1e-5), ("1E5", 1e5), ("-2.5e3", -2500.0), ("true", True), ("False", False), ("null", None),
        ("'010'", "010"), ('"1:30"', "1:30"), ("'yes'", "yes"), ("'1e-5'", "1e-5"), ("v1", "v1"), ("500m", "500m"),
    ],
)  # fmt: skip
def test_what_all_readers_agree_on_is_taken(text: str, value: Any) -> None:
    found = strict_yaml.load(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_a_key_that_readers_disagree_on_is_refused_too() -> None:
    with pytest.raises(InvalidInput, match="line 1"):
        strict_yaml.load("on: 1")


def test_the_spec_names_the_file_and_the_line() -> None:
    with pytest.raises(InvalidInput, match=r"^m/model\.yaml: line 3: 010 is one thing"):
        spec.parse("model: m\ntraining:\n  seed: 010\n", where="m/model.yaml")
