from __future__ import annotations

import sys
from pathlib import Path

import pytest

from infra.images import programs, registry
from infra.install.facts import Image, read_images
from seatrial.errors import InvalidInput, Unavailable


def test_what_is_pushed_is_what_an_installation_reads(tmp_path: Path) -> None:
    path, digest = tmp_path / "state" / "images.json", f"sha256:{'a' * 64}"
    registry.write({"seatrial/base": {"repository": "r/base", "digest": digest, "bytes": 1}}, path)
    assert read_images(path) == {"seatrial/base": Image(repository="r/base", digest=digest)}


# Other people's programs


def fails(said: str, log: Path) -> None:
    programs.run([sys.executable, "-c", f"import sys; sys.stderr.write({said!r}); sys.exit(3)"], log=log)


def test_a_failure_shows_the_logs_tail(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "x.log"
    with pytest.raises(InvalidInput) as caught:
        fails("\n".join(f"line {number}" for number in range(50)), log)
    assert "ended with 3" in str(caught.value)
    assert str(log) in str(caught.value)
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [f"line {n}" for n in range(30, 50)]


def test_what_an_earlier_program_said_is_no_part_of_the_tail(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    programs.run([sys.executable, "-c", "import sys; sys.stderr.write('earlier\\n')"], log=log)
    with pytest.raises(InvalidInput) as caught:
        fails("later", log)
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == ["later"]


@pytest.mark.parametrize(
    "said",
    ["dns error: failed to lookup", "Could not resolve 'x'", "dial tcp: connection refused", "E: Failed to fetch y"],
)
def test_a_registry_that_is_away_is_worth_another_try(tmp_path: Path, said: str) -> None:
    with pytest.raises(Unavailable):
        fails(said, tmp_path / "x.log")


def test_a_program_that_is_missing_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InvalidInput, match="apt-get install --no-install-recommends buildah runc"):
        programs.required("runc", "buildah")
