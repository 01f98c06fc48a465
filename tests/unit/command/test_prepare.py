"""The data of an example model: prepared once, kept once, named by content."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes_store import MemoryStore

from seatrial import digests
from seatrial.app import data
from seatrial.errors import InvalidInput, Unavailable

WRITES = "import sys, pathlib\npathlib.Path(sys.argv[sys.argv.index('--out') + 1]).write_text({text!r})\n"


def model(tmp_path: Path, script: str) -> Path:
    folder = tmp_path / "models" / "m"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prepare.py").write_text(script)
    return folder


def test_what_prepare_makes_is_kept_and_made_once(tmp_path: Path) -> None:
    said: list[str] = []
    folder = model(tmp_path, WRITES.format(text="rows"))
    first = data.prepared(folder, home=tmp_path, say=said.append)
    assert first.read_text() == "rows"
    assert data.prepared(folder, home=tmp_path, say=said.append) == first
    assert said == ["preparing the data of m"]


def test_another_prepare_makes_other_data(tmp_path: Path) -> None:
    first = data.prepared(model(tmp_path, WRITES.format(text="a")), home=tmp_path, say=lambda _: None)
    second = data.prepared(model(tmp_path, WRITES.format(text="b")), home=tmp_path, say=lambda _: None)
    assert first != second
    assert second.read_text() == "b"


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("raise SystemExit('no such column')", InvalidInput, "no such column"),
        ("pass", InvalidInput, "it said nothing"),
        ("print('registry away'); raise SystemExit(75)", Unavailable, "registry away"),
    ],
)
def test_a_prepare_that_fails_is_named_with_its_last_words(
    script: str, kind: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=said):
        data.prepared(model(tmp_path, script), home=tmp_path, say=lambda _: None)
    assert not list((tmp_path / "data").rglob("*.parquet"))


def test_a_model_without_prepare_needs_data_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    with pytest.raises(InvalidInput, match="--data"):
        data.prepared(tmp_path / "m", home=tmp_path, say=lambda _: None)


def test_data_is_stored_once_under_its_digest(tmp_path: Path) -> None:
    store, file = MemoryStore(), tmp_path / "x.parquet"
    file.write_bytes(b"rows")
    digest = digests.of_bytes(b"rows").removeprefix("sha256:")
    assert data.kept(file, "m", store) == f"s3://seatrial/data/m/{digest}.parquet"
    data.kept(file, "m", store)
    assert store.writes == [f"data/m/{digest}.parquet"]


def test_a_path_becomes_a_uri_and_other_places_stay(tmp_path: Path) -> None:
    file = tmp_path / "rows of May.parquet"
    file.write_bytes(b"x")
    assert data.checked_uri(str(file)) == file.as_uri()
    assert data.checked_uri(file.as_uri()) == file.as_uri()
    assert data.checked_uri("s3://b/k") == "s3://b/k"
    assert data.checked_uri(file.as_uri().replace("file://", "file://localhost")) == file.as_uri()


def test_a_file_of_another_machine_is_not_taken_from_this_one(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with pytest.raises(InvalidInput, match="got the host 'elsewhere'"):
        data.checked_uri(f"file://elsewhere{tmp_path}/rows.csv")
