"""The command line: exit codes, one clear line on stderr, help that reads like a manual, and a quick start."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from seatrial import errors
from seatrial.app import cli
from seatrial.app.commands import _ports
from seatrial.app.commands._place import ROOT

COMMANDS = (
    "release",
    "submit",
    "status",
    "history",
    "report",
    "logs",
    "predict",
    "rollback",
    "settle",
    "adopt",
    "drill",
    "up",
    "down",
    "render",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is not there yet."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SEATRIAL_HOME", str(folder))
    monkeypatch.delenv("SEATRIAL_DEBUG", raising=False)
    return folder


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def app(_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)


@pytest.mark.parametrize("name", ["../x", "A b", "$(id)", "{{x}}", "a" * 31, "", "nobody"])
@pytest.mark.parametrize("command", ["release", "status", "history", "predict", "rollback", "settle", "drill"])
def test_a_model_that_is_none_is_refused_with_the_known_ones_and_nothing_is_started(
    command: str, name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--fault", "errors"] if command == "drill" else []
    assert cli.run([command, *more, "--", name]) == 78
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1
    assert "known models: cart_abandonment, click_prediction" in told.err
    assert not home.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: m\nsurprise: 1\n", "surprise"),
        ("model: other\n", "owner: Field required"),
        ("- a list", "must hold a mapping"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_broken_spec_is_refused_before_anything_is_started(
    text: str, said: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "source" / "models" / "m"
    folder.mkdir(parents=True)
    (folder / "model.yaml").write_text(text)
    assert cli.run(["release", "m", "--source", str(tmp_path / "source")]) == 78
    assert said in capsys.readouterr().err
    assert not home.exists()


def test_a_model_that_the_template_does_not_know_asks_for_make_render(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "source" / "models" / "my_model"
    shutil.copytree(ROOT / "models" / "cart_abandonment", folder)
    spec = folder / "model.yaml"
    spec.write_text(spec.read_text().replace("model: cart_abandonment", "model: my_model"))
    assert cli.run(["release", "my_model", "--source", str(tmp_path / "source")]) == 78
    assert "make render" in capsys.readouterr().err
    assert not home.exists()


@pytest.mark.parametrize("content", [None, b""])
def test_data_that_is_missing_or_empty_is_refused_before_anything_is_started(
    content: bytes | None, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.parquet"
    if content is not None:
        rows.write_bytes(content)
    assert cli.run(["release", "cart_abandonment", "--data", str(rows)]) == 78
    assert str(rows) in capsys.readouterr().err
    assert not home.exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.StepError("m"), 1),
        (errors.InvalidInput("m"), 78),
        (errors.Frozen("m"), 78),
        (errors.Unavailable("m"), 75),
        (errors.Conflict("m"), 75),
        (errors.IntegrityError("m"), 76),
        (KeyboardInterrupt(), 130),
        (typer.Exit(7), 7),
    ],
)
def test_each_kind_of_error_has_its_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, error)
    assert cli.run(["status"]) == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("no_color", "wanted"), [("", "\x1b[31merror: m\x1b[0m\n"), ("1", "error: m\n")])
def test_on_a_terminal_an_error_is_red_unless_colour_is_unwanted(
    no_color: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    raising(monkeypatch, errors.InvalidInput("m"))
    cli.run(["status"])
    assert terminal.getvalue() == wanted


def test_a_person_whom_the_machine_has_no_name_for_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert _ports.person() == f"uid {os.getuid()}"


def test_a_bug_keeps_its_traceback_in_a_file_that_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, ZeroDivisionError("by zero"))
    assert cli.run(["status"]) == 1
    told = capsys.readouterr().err
    (kept,) = (home / "errors").iterdir()
    assert told.count("\n") == 1
    assert str(kept) in told
    assert "ZeroDivisionError: by zero" in kept.read_text()


def test_a_bug_shows_its_traceback_when_asked_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEATRIAL_DEBUG", "1")
    raising(monkeypatch, ZeroDivisionError())
    cli.run(["status"])
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["fly"], ["release", "--fly"], ["drill", "m"], ["drill", "m", "--fault", "x"]])
def test_wrong_usage_is_wrong_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 78
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert told.endswith("see --help\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example_on_a_line_of_its_own_and_the_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"\n      seatrial {command}" in told
    assert "Exit codes: " in told


def test_without_a_command_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == 0
    told = capsys.readouterr().out
    assert all(f"\n  {command} " in told for command in COMMANDS)


def test_status_of_a_sandbox_that_is_down_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["status"]) == 0
    assert "the sandbox is down: nobody serves" in capsys.readouterr().out
    assert not home.exists()


def test_nothing_heavy_is_imported_to_show_the_help() -> None:
    program = "import sys, seatrial.app.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {
        "boto3",
        "kubernetes",
        "httpx",
        "mlflow",
        "onnx",
        "numpy",
        "hera",
        "polars",
        "pandas",
        "seatrial.app.runner",
    }
    assert not heavy & set(done.stdout.split())


def test_a_terminal_that_knows_ascii_only_ends_no_command() -> None:
    program = "import sys; from seatrial.app import cli; cli.run = lambda _: print('✔ promoted') or 0; cli.main()"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"? promoted\n", b"")
