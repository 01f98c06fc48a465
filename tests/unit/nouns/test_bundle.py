"""A bundle is what its manifest says, or it is nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial import bundle, digests
from seatrial.errors import IntegrityError


def sealed(root: Path, model: bytes = b"model") -> Path:
    (root / "model" / "extra").mkdir(parents=True)
    (root / "config.pbtxt").write_bytes(b"config")
    (root / "model" / "model.onnx").write_bytes(model)
    (root / "model" / "extra" / "weights.bin").write_bytes(b"weights")
    bundle.seal(root, "tea_orders")
    return root


def test_what_is_sealed_reads_back_the_same(tmp_path: Path) -> None:
    root = sealed(tmp_path / "b")
    found = bundle.read(root)
    assert set(found.files) == {"config.pbtxt", "model/model.onnx", "model/extra/weights.bin"}
    assert found.model_digest == digests.of_bytes(b"model")
    assert found.prefix == f"bundles/{found.digest.replace(':', '-')}"


def test_equal_content_is_the_same_bundle_wherever_it_lies(tmp_path: Path) -> None:
    one, two = (bundle.read(sealed(tmp_path / name)) for name in ("one", "two"))
    other = bundle.read(sealed(tmp_path / "three", b"another"))
    assert one.digest == two.digest != other.digest


def test_sealing_twice_changes_nothing(tmp_path: Path) -> None:
    root = sealed(tmp_path / "b")
    before = (root / "manifest.json").read_bytes()
    bundle.seal(root, "tea_orders")
    assert (root / "manifest.json").read_bytes() == before


def swap_for_symlink(path: Path) -> None:
    outside = path.parents[2] / "outside"
    path.rename(outside)
    path.symlink_to(outside)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "altered": lambda r: (r / "model/model.onnx").write_bytes(b"Model"),
    "missing": lambda r: (r / "model/extra/weights.bin").unlink(),
    "extra": lambda r: (r / "model/late.bin").write_bytes(b""),
    "renamed": lambda r: (r / "config.pbtxt").rename(r / "config.txt"),
    "a second manifest": lambda r: (r / "model/manifest.json").write_bytes(b"{}"),
    "no manifest": lambda r: (r / "manifest.json").unlink(),
    "an empty manifest": lambda r: (r / "manifest.json").write_bytes(b""),
    "a manifest of nothing": lambda r: (r / "manifest.json").write_text('{"model_name": "tea_orders", "files": {}}'),
    "an unknown key": lambda r: (r / "manifest.json").write_text(
        json.dumps({**json.loads((r / "manifest.json").read_text()), "version": 3})
    ),
    "a symlink": lambda r: (r / "model/link").symlink_to("model.onnx"),
    "a symlink to a folder": lambda r: (r / "link").symlink_to("model"),
    "a symlink in place of a file": lambda r: swap_for_symlink(r / "model/model.onnx"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_bundle_that_is_not_its_manifest_is_refused(tmp_path: Path, damage: str) -> None:
    root = sealed(tmp_path / "b")
    DAMAGE[damage](root)
    with pytest.raises(IntegrityError):
        bundle.read(root)
    with pytest.raises(IntegrityError):
        bundle.lay_out(root, 1, tmp_path / "repository")
    assert not (tmp_path / "repository").exists()


@pytest.mark.parametrize("missing", ["config.pbtxt", "model/model.onnx"])
def test_without_config_or_model_there_is_no_bundle(tmp_path: Path, missing: str) -> None:
    root = sealed(tmp_path / "b")
    (root / missing).unlink()
    (root / "manifest.json").unlink()
    with pytest.raises(IntegrityError, match=missing):
        bundle.seal(root, "tea_orders")
    assert not (root / "manifest.json").exists()


def test_it_is_laid_out_as_triton_wants_it(tmp_path: Path) -> None:
    bundle.lay_out(sealed(tmp_path / "b"), 42, tmp_path / "r")
    files = sorted(p.relative_to(tmp_path / "r").as_posix() for p in (tmp_path / "r").rglob("*") if p.is_file())
    assert files == [
        "tea_orders/42/extra/weights.bin",
        "tea_orders/42/model.onnx",
        "tea_orders/config.pbtxt",
    ]


def test_a_pipe_is_no_file_of_a_bundle(tmp_path: Path) -> None:
    root = sealed(tmp_path / "b")
    os.mkfifo(root / "model" / "pipe")
    with pytest.raises(IntegrityError, match="pipe"):
        bundle.read(root)
