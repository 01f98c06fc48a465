"""A tracking server in memory, and a model's folder with the release that resolved it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from seatrial import digests
from seatrial.release import Release
from seatrial.spec import Spec

ZERO = "sha256:" + "0" * 64


class Tracker:
    """Runs by release, as MLflow would keep them."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}

    def log(self, *, model_name: str, record: Mapping[str, Any], files: Iterable[Path]) -> str:
        kept = {path.name: path.read_bytes() for path in files}
        self.runs[record["release_id"]] = {"model_name": model_name, "record": dict(record), "files": kept}
        return f"run-of-{record['release_id']}"


def release(wanted: Spec) -> Release:
    """The first release of the model that `wanted` describes."""
    return Release(
        release_id="uid-1",
        model_name=wanted.model,
        version=1,
        revision="abc",
        reason="a test",
        data_uri="file:///data.parquet",
        source_digest=ZERO,
        spec_digest=wanted.digest,
        data_digest=digests.of_bytes(b"data"),
        images_digest=ZERO,
        release_digest=ZERO,
        champion=None,
    )


def source(folder: Path, wanted: Spec, like: Path | None = None) -> tuple[Path, Path]:
    """A model's folder and its release.json under `folder`; the model's other files are those of `like`."""
    place = folder / "source"
    place.mkdir(parents=True)
    if like is not None:
        shutil.copytree(like, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "model.yaml").write_text(yaml.safe_dump(wanted.model_dump(mode="json")))
    (folder / "release.json").write_text(release(wanted).model_dump_json())
    return place, folder / "release.json"
