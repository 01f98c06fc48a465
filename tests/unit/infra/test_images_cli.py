from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from infra.images import __main__ as command
from infra.images import listing
from infra.images.build import Report
from infra.images.built import Built


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path))


BUILT = Built(
    name="seatrial/base",
    key="base-0123456789ab",
    digest="sha256:" + "a" * 64,
    bytes=21_100_000,
    unpacked_bytes=55_800_000,
    user="10001:10001",
    entrypoint=("python3",),
)


def test_before_anything_is_built_list_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"]) == 78
    assert "run `python -m infra.images build`" in capsys.readouterr().err


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command.main(["build"]) == 78
    assert "sudo" in capsys.readouterr().err


def test_a_machine_without_the_programs_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert command.main(["build"]) == 78
    assert "apt-get install --no-install-recommends buildah mmdebstrap skopeo" in capsys.readouterr().err


def test_one_line_an_image_says_how_long_it_took_and_how_large_it_is() -> None:
    line = listing.line(Report(built=BUILT, seconds=1.25, new=True))
    assert line.split() == ["seatrial/base", "built", "1.2", "s", "21.1", "MB", "compressed", "55.8", "MB", "unpacked"]


def test_the_table_shows_each_size_beside_its_bound() -> None:
    head, row = listing.table({BUILT.name: BUILT}).splitlines()
    assert head.split() == ["IMAGE", "DIGEST", "MB", "MOST", "UNPACKED", "MOST"]
    assert row.split() == [BUILT.name, BUILT.digest, "21.1", "24", "55.8", "62"]


def test_programs_get_whole_digests_and_bytes() -> None:
    assert json.loads(listing.as_json({BUILT.name: BUILT})) == {
        "seatrial/base": {
            "digest": BUILT.digest,
            "bytes": 21_100_000,
            "unpacked_bytes": 55_800_000,
            "user": "10001:10001",
        }
    }
