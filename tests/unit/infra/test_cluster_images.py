"""Images made from programs."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from infra.cluster import images
from infra.cluster.images import Recipe


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    program = tmp_path / "program"
    program.write_text("binary")
    return Recipe(
        name="localhost/tool:1",
        programs={"bin/tool": str(program)},
        links={"bin/alias": "tool"},
        texts={"etc/passwd": "root\n"},
        folders={"tmp": 0o1777},
        config={"Entrypoint": ["tool"], "User": "1"},
    )


def blobs(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        read = {entry.name: tar.extractfile(entry) for entry in tar.getmembers()}
        return {name: file.read() for name, file in read.items() if file}


def test_an_archive_is_named_for_containerd_and_each_blob_has_its_digest(tmp_path: Path, recipe: Recipe) -> None:
    images.write(tmp_path / "image.tar", recipe)
    found = blobs(tmp_path / "image.tar")
    (entry,) = json.loads(found["index.json"])["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "localhost/tool:1"
    for name, blob in found.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"
    manifest = json.loads(found[f"blobs/sha256/{entry['digest'].removeprefix('sha256:')}"])
    config = json.loads(found[f"blobs/sha256/{manifest['config']['digest'].removeprefix('sha256:')}"])
    assert config["config"]["User"] == "1"
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]


def test_the_layer_holds_programs_links_texts_and_folders(tmp_path: Path, recipe: Recipe) -> None:
    images.write(tmp_path / "image.tar", recipe)
    layer = next(path for path, blob in blobs(tmp_path / "image.tar").items() if b"ustar" in blob[:512])
    with tarfile.open(tmp_path / "image.tar") as tar, tarfile.open(fileobj=tar.extractfile(layer)) as inner:
        modes = {entry.name: oct(entry.mode) for entry in inner.getmembers()}
        assert modes["bin/tool"] == "0o755"
        assert modes["tmp"] == "0o1777"
        assert modes["etc"] == "0o755"
        assert inner.getmember("bin/alias").linkname == "tool"


def test_the_same_content_is_written_once(tmp_path: Path, recipe: Recipe) -> None:
    said: list[str] = []
    first = images.ensure(tmp_path, [recipe], said.append)
    assert images.ensure(tmp_path, [recipe], pytest.fail) == first
    Path(recipe.programs["bin/tool"]).write_text("another binary")
    assert images.ensure(tmp_path, [recipe], said.append) != first
