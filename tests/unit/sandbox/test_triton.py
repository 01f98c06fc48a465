"""When Triton's environment is installed, and when not."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.app.sandbox import triton
from seatrial.errors import InvalidInput


def never(*_: object) -> None:
    raise AssertionError("nothing may be installed")


def installed(home: Path) -> Path:
    wrapper = home / "triton" / "bin" / "tritonserver"
    wrapper.parent.mkdir(parents=True)
    wrapper.touch()
    (home / "triton" / triton.STAMP).write_text(triton._inputs())
    return wrapper


def test_a_current_environment_is_found_and_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "_run", never)
    wrapper = installed(tmp_path)
    assert triton.install_triton(tmp_path, never) == wrapper


def test_another_lock_makes_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "triton.txt"
    lock.write_text("other")
    monkeypatch.setattr(triton, "ROOT", tmp_path)
    monkeypatch.setattr(triton, "SERVING", tmp_path / "serving")
    monkeypatch.setattr(triton, "LOCK", lock)
    before = triton._inputs()
    lock.write_text("changed")
    assert triton._inputs() != before


def test_a_half_made_environment_never_takes_the_place_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = installed(tmp_path)
    (tmp_path / "triton" / triton.STAMP).write_text("of an earlier lock")

    def fail(command: list[str]) -> None:
        Path(command[-1]).mkdir(parents=True)
        raise InvalidInput("no way to the packages")

    monkeypatch.setattr(triton, "_uv", lambda _: "uv")
    monkeypatch.setattr(triton, "_run", fail)
    with pytest.raises(InvalidInput):
        triton.install_triton(tmp_path, lambda _: None)
    assert wrapper.exists()
    assert [path.name for path in tmp_path.glob("triton.*-*")] == []


def test_without_uv_the_error_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(InvalidInput, match=r"uv is needed .* PATH: run `make run`"):
        triton.install_triton(tmp_path, lambda _: None)


def test_the_lock_pins_every_package_by_hash_and_names_no_index() -> None:
    text = triton.LOCK.read_text()
    assert "nvidia-pytriton==0.7.0" in text
    assert "numpy==1.26.4" in text
    assert "://" not in text
    for block in text.replace("\\\n", " ").splitlines():
        assert block.startswith("#") or "--hash=sha256:" in block
