"""Digests go by content, and by nothing else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial import digests
from seatrial.errors import IntegrityError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values, max_size=6))
def test_key_order_does_not_count(value: dict[str, Any]) -> None:
    assert digests.of_json(dict(reversed(value.items()))) == digests.of_json(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_json_cannot_say_has_no_digest(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        digests.of_json(value)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_a_file_and_its_bytes_have_one_digest(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "f").write_bytes(data)
    assert digests.of_file(tmp_path / "f") == digests.of_bytes(data) == "sha256:" + hashlib.sha256(data).hexdigest()


def tree(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def test_a_folder_goes_by_paths_and_contents_not_by_times_or_modes(tmp_path: Path) -> None:
    files = {"a": b"1", "b/c": b"2"}
    one, two = tree(tmp_path / "one", files), tree(tmp_path / "two", dict(reversed(files.items())))
    os.utime(two / "a", (0, 0))
    (two / "a").chmod(0o600)
    (two / "empty").mkdir()
    assert digests.of_tree(one) == digests.of_tree(two)


@pytest.mark.parametrize(
    "other", [{"a": b"1"}, {"a": b"1", "b/c": b"3"}, {"a": b"1", "b/d": b"2"}, {"a": b"1", "b/c": b"2", "d": b""}]
)
def test_a_folder_that_differs_has_another_digest(tmp_path: Path, other: dict[str, bytes]) -> None:
    one = tree(tmp_path / "one", {"a": b"1", "b/c": b"2"})
    assert digests.of_tree(one) != digests.of_tree(tree(tmp_path / "two", other))


def test_a_symlink_in_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(IntegrityError, match="symlink"):
        digests.of_tree(tmp_path)


def test_a_short_digest_is_twelve_digits() -> None:
    assert digests.short(digests.of_bytes(b"")) == "e3b0c44298fc"
