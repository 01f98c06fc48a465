"""The cache of programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.cluster import build, toolchain
from infra.cluster.recipes import Recipe, Workshop
from infra.cluster.versions import Versions
from seatrial.errors import InvalidInput, Unavailable

VERSIONS = Versions(go="1.26", modules={}, packages={}, unpacked={})


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One recipe that writes one program; the names of what was made."""
    names: list[str] = []

    def make(shop: Workshop) -> None:
        names.append("tool")
        (shop.scratch / "thrown away").write_text("")
        (shop.out / "tool").write_text("#!/bin/sh\n")
        (shop.out / "tool").chmod(0o755)

    monkeypatch.setattr(build, "RECIPES", (Recipe("tool", (), make),))
    monkeypatch.setattr(toolchain, "require", lambda _: None)
    return names


def test_a_part_is_made_once_and_found_from_then_on(tmp_path: Path, made: list[str]) -> None:
    said: list[str] = []
    first = build.build(tmp_path, VERSIONS, said.append)
    again = build.build(tmp_path, VERSIONS, pytest.fail)
    assert made == ["tool"]
    assert again == first
    assert Path(first.program("tool", "tool")).read_text() == "#!/bin/sh\n"
    assert [path.name for path in first.for_people()] == ["tool"]
    assert [line.partition("tool-")[0] for line in said[:2]] == ["building ", "built "]


def test_nothing_of_the_making_is_left(tmp_path: Path, made: list[str]) -> None:
    build.build(tmp_path, VERSIONS, lambda _: None)
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"build.lock", "tool"}


def test_a_part_that_fails_is_not_in_the_cache(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(shop: Workshop) -> None:
        (shop.out / "half").write_text("")
        toolchain.run(["sh", "-c", "echo of no use; exit 3"], log=shop.go.log, cwd=shop.scratch, variables={})

    monkeypatch.setattr(build, "RECIPES", (Recipe("tool", (), fail),))
    with pytest.raises(Unavailable, match="of no use"):
        build.build(tmp_path, VERSIONS, lambda _: None)
    with pytest.raises(InvalidInput, match=r"not built yet: tool; run `python -m infra\.cluster build`"):
        build.found(tmp_path, VERSIONS)


def test_go_that_is_not_there_is_asked_for_by_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"go 1\.26 or newer is needed on PATH"):
        toolchain.require("1.26")


def test_the_end_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert toolchain.tail(log) == "(nothing was written)"
    log.write_text("\n".join(str(number) for number in range(100)))
    assert toolchain.tail(log, 2) == "98\n99"
