"""Folders of the host that clusters mount on."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.cluster import host_folders


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record"


def test_the_last_cluster_removes_what_the_first_one_made(tmp_path: Path, record: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    for _ in range(2):
        host_folders.make([str(ours), str(theirs)], record)
    host_folders.remove(others_run=True, record=record)
    assert ours.is_dir()
    host_folders.remove(others_run=False, record=record)
    assert sorted(tmp_path.iterdir()) == [theirs]


def test_a_folder_that_somebody_else_uses_by_now_stays(tmp_path: Path, record: Path) -> None:
    host_folders.make([str(tmp_path / "ours")], record)
    (tmp_path / "ours" / "file").touch()
    host_folders.remove(others_run=False, record=record)
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_nothing_made_is_nothing_removed(tmp_path: Path, record: Path) -> None:
    host_folders.remove(others_run=False, record=record)
    assert list(tmp_path.iterdir()) == []
