"""Arrays written twice, by whichever Python, are equal files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from steps.train_model import archive

ARRAYS = {"answer": np.array([[0.25], [0.5]]), "input__platform": np.array([["web"], ["ios"]])}


def test_numpy_reads_what_was_written(tmp_path: Path) -> None:
    archive.write(tmp_path / "a.npz", ARRAYS)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert {name: found[name].tolist() for name in found} == {n: a.tolist() for n, a in ARRAYS.items()}


def test_the_bytes_follow_from_the_arrays_alone(tmp_path: Path) -> None:
    """Golden: a Python that writes archives otherwise fails here, not between a laptop and a cluster."""
    archive.write(tmp_path / "a.npz", ARRAYS)
    assert hashlib.sha256((tmp_path / "a.npz").read_bytes()).hexdigest()[:16] == "e1b097bba253e4db"


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Object arrays"):
        archive.write(tmp_path / "a.npz", {"answer": np.array([object()])})
