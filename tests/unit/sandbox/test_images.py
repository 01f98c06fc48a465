"""Reading images by digest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import serving_images as made

from seatrial.app.sandbox import images
from seatrial.errors import IntegrityError


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_layers_lie_over_each_other(tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1", "models/m": b"1"}, {"models/m": b"2", "b": b"3"})
    assert files(images.unpack(tmp_path, digest, tmp_path / "roots")) == {"a": b"1", "models/m": b"2", "b": b"3"}


def test_whiteouts_remove(tmp_path: Path) -> None:
    layers = {"d/a": b"1", "d/b": b"1", "e/x": b"1"}, {"d/.wh.a": b"", "e/.wh..wh..opq": b"", "e/y": b"2"}
    assert files(images.unpack(tmp_path, made.write_image(tmp_path, *layers), tmp_path / "roots")) == {
        "d/b": b"1",
        "e/y": b"2",
    }


def test_the_second_call_finds_the_first(tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"})
    first = images.unpack(tmp_path, digest, tmp_path / "roots")
    (first / "mark").touch()
    assert (images.unpack(tmp_path, digest, tmp_path / "roots") / "mark").exists()


def test_only_the_images_in_use_stay_unpacked(tmp_path: Path) -> None:
    roots = tmp_path / "roots"
    images.forget_others(roots, {"sha256:none"})  # nothing was unpacked yet
    kept, gone = (made.write_image(tmp_path, {"a": text}) for text in (b"1", b"2"))
    for digest in (kept, gone):
        images.unpack(tmp_path, digest, roots)
    (roots / ".half-unpacked.17").mkdir()
    images.forget_others(roots, {kept})
    assert [root.name for root in roots.iterdir()] == [kept.removeprefix("sha256:")]


def test_an_index_gives_its_manifest_for_this_machine(tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"})
    other = {"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "arm64"}}
    ours = {"digest": digest, "platform": {"os": "linux", "architecture": "amd64"}}
    index = made.write_blob(tmp_path, json.dumps({"schemaVersion": 2, "manifests": [other, ours]}).encode())
    assert images.manifest(tmp_path, index["digest"]) == images.manifest(tmp_path, digest)


def test_a_digest_that_is_not_there_is_a_missing_image(tmp_path: Path) -> None:
    with pytest.raises(images.ImageMissing, match="no image"):
        images.unpack(tmp_path, "sha256:" + "0" * 64, tmp_path / "roots")


@pytest.mark.parametrize("which", ["manifest", "layer"])
def test_an_altered_blob_is_refused_and_nothing_is_left(tmp_path: Path, which: str) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"})
    layer = images.manifest(tmp_path, digest)["layers"][0]["digest"]
    path = tmp_path / "blobs" / "sha256" / (digest if which == "manifest" else layer).removeprefix("sha256:")
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(IntegrityError, match="altered"):
        images.unpack(tmp_path, digest, tmp_path / "roots")
    assert not (tmp_path / "roots" / digest.removeprefix("sha256:")).exists()


def test_a_missing_layer_is_refused(tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"})
    layer = images.manifest(tmp_path, digest)["layers"][0]["digest"]
    (tmp_path / "blobs" / "sha256" / layer.removeprefix("sha256:")).unlink()
    with pytest.raises(IntegrityError, match="does not have"):
        images.unpack(tmp_path, digest, tmp_path / "roots")


def test_a_layer_may_not_reach_out_of_the_image(tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"../../outside": b"1"})
    with pytest.raises(IntegrityError, match="reach out"):
        images.unpack(tmp_path, digest, tmp_path / "roots")
    assert not (tmp_path / "outside").exists()


def test_a_layer_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    layer = made.write_blob(tmp_path, b"no tar at all")
    manifest = made.write_blob(tmp_path, json.dumps({"layers": [layer]}).encode())
    with pytest.raises(IntegrityError, match="cannot be read"):
        images.unpack(tmp_path, manifest["digest"], tmp_path / "roots")
