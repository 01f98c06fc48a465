from __future__ import annotations

import sys
from pathlib import Path

import pytest

from infra.images import programs, registry
from infra.images.catalogue import STEPS
from seatrial.errors import InvalidInput, Unavailable


def pushed(**changed: str) -> registry.Pushed:
    return {
        step.name: {"repository": f"r/{step.short}", "digest": changed.get(step.short, f"sha256:{number}"), "bytes": 1}
        for number, step in enumerate(STEPS)
    }


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "state" / "images.json"
    registry.write(pushed(), path)
    assert registry.read(path) == pushed()


@pytest.mark.parametrize("text", ["", "[]", "{}x", '{"a": {}}', '{"a": null}'])
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "images.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"run `python -m infra\.images push`"):
        registry.read(path)


def test_the_digest_over_the_steps_tells_each_of_them() -> None:
    before = registry.step_images(pushed())
    assert before.startswith("sha256:")
    assert registry.step_images(pushed(**{"run-canary": "sha256:new"})) != before


def test_neither_the_registry_nor_the_order_nor_other_images_change_it() -> None:
    before = registry.step_images(pushed())
    elsewhere = {name: {**entry, "repository": f"other/{name}"} for name, entry in reversed(pushed().items())}
    assert registry.step_images({**elsewhere, "seatrial/git-server": {"digest": "sha256:x"}}) == before


def test_a_step_that_was_not_pushed_is_named() -> None:
    found = pushed()
    del found["seatrial/train-model"]
    with pytest.raises(InvalidInput, match="seatrial/train-model"):
        registry.step_images(found)


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
