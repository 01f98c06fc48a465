"""How every step runs: arguments, outputs, exit codes."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from seatrial.errors import IntegrityError, InvalidInput, Unavailable
from steps import _runtime
from steps._contract import Contract, Step

STEP = Step(summary="Add things up.", deadline_s=10)


class Inputs(Contract):
    count: int = Field(ge=0, description="how many")
    reason: str = Field(description="free text")
    rows: Path = Field(description="file: rows")


class Outputs(Contract):
    decision: Literal["pass", "none"] = Field(default="none", description="the decision")
    total: int = Field(default=0, description="the sum")
    report: Path = Field(description="file: a report")


def run(inputs: Inputs, scratch: Path) -> Outputs:
    report = scratch / "anything.html"
    report.write_text("<p>done")
    return Outputs(decision="pass", total=inputs.count + 1, report=report)


@pytest.fixture
def io(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_IO", str(tmp_path))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows").write_text("1\n")
    return tmp_path


def exit_code(arguments: list[str], body: Callable[[Inputs, Path], Outputs] = run) -> int:
    with pytest.raises(SystemExit) as ended:
        _runtime.main("add_up", STEP, Inputs, body, arguments)
    return int(ended.value.code or 0)


def test_outputs_lie_under_their_kebab_names(io: Path) -> None:
    assert exit_code(["--count", "2", "--reason", ""]) == 0
    assert (io / "out/params/decision").read_text() == "pass"
    assert (io / "out/params/total").read_text() == "3"
    assert (io / "out/report").read_text() == "<p>done"
    assert sorted(p.name for p in (io / "out").rglob("*")) == ["decision", "params", "report", "total"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--count", "2"], "--reason"),
        (["--count", "two", "--reason", "x"], "--count"),
        (["--count", "-1", "--reason", "x"], "--count"),
        (["--count", "2", "--count", "3", "--reason", "x"], "given twice"),
        (["--count", "2", "--reason"], "needs a value"),
        (["--colour", "red", "--count", "2", "--reason", "x"], "--colour"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_written(
    io: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert exit_code(arguments) == InvalidInput.exit_code
    assert told in capsys.readouterr().err
    assert not (io / "out").exists()


def test_a_missing_input_file_is_the_callers_fault(io: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (io / "in/rows").unlink()
    assert exit_code(["--count", "2", "--reason", "x"]) == InvalidInput.exit_code
    assert "'rows'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", " x ", "null", "true", "1e5", "{}", "- a", "#x", "${x}", "%s", '"', "'", "\\", "a\nb\t", "é中📈"]
)
def test_a_text_parameter_arrives_as_it_was_given(io: Path, text: str) -> None:
    seen: list[str] = []

    def look(inputs: Inputs, scratch: Path) -> Outputs:
        seen.append(inputs.reason)
        return run(inputs, scratch)

    assert exit_code(["--count", "0", "--reason", text], look) == 0
    assert seen == [text]


@pytest.mark.parametrize("error", [InvalidInput("i"), Unavailable("u"), IntegrityError("g")])
def test_an_error_of_ours_gives_its_exit_code_and_no_outputs(io: Path, error: InvalidInput) -> None:
    def fail(inputs: Inputs, scratch: Path) -> Outputs:
        (scratch / "half").write_text("half done")
        raise error

    assert exit_code(["--count", "0", "--reason", ""], fail) == error.exit_code
    assert not (io / "out/params").exists()
    assert not (io / "out/report").exists()


def test_any_other_error_is_a_bug(io: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(inputs: Inputs, scratch: Path) -> Outputs:
        raise ZeroDivisionError

    assert exit_code(["--count", "0", "--reason", ""], fail) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 75), (errno.EROFS, 1), (errno.EACCES, 1)])
def test_a_full_disk_may_have_room_later_and_a_closed_one_is_a_bug(io: Path, number: int, code: int) -> None:
    def fail(inputs: Inputs, scratch: Path) -> Outputs:
        raise OSError(number, "no", "/place")

    assert exit_code(["--count", "0", "--reason", ""], fail) == code


def test_a_rerun_after_a_crash_gives_the_same_outputs(io: Path) -> None:
    def crash(inputs: Inputs, scratch: Path) -> Outputs:
        (scratch / "anything.html").write_text("half")
        raise Unavailable("away")

    exit_code(["--count", "2", "--reason", ""], crash)
    assert exit_code(["--count", "2", "--reason", ""]) == 0
    assert exit_code(["--count", "2", "--reason", ""]) == 0
    assert (io / "out/report").read_text() == "<p>done"


def test_each_line_on_stdout_is_json_even_with_a_long_text(io: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--count", "0", "--reason", "x" * 70_000]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["start", "done"]
    assert events[-1]["outputs"] == {"decision": "pass", "total": 1}


def test_why_it_failed_stands_where_kubernetes_looks_for_it(io: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = io / "termination-log"
    place.touch()
    monkeypatch.setenv("SEATRIAL_TERMINATION_LOG", str(place))

    def broken(_inputs: Inputs, _scratch: Path) -> Outputs:
        raise InvalidInput(f"the data lacks\nthe label {'é' * 5000}")

    assert exit_code(["--count", "2", "--reason", ""], broken) == 78
    assert place.read_bytes().startswith(b"the data lacks the label ")
    assert place.stat().st_size <= 4096


def test_nothing_is_written_where_there_is_no_place_for_it(io: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_TERMINATION_LOG", str(io / "none"))
    assert exit_code(["--count", "-1", "--reason", ""]) == 78
    assert not (io / "none").exists()
