"""The command `seatrial`: every error on one line, with the exit code of its kind."""

from __future__ import annotations

import inspect
import io
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import typer

from seatrial.app.commands import (
    drill,
    history,
    logs,
    people,
    predict,
    release,
    render,
    report,
    sandbox,
    status,
    submit,
)
from seatrial.app.commands._place import home
from seatrial.errors import InvalidInput, StepError, of_disk, shortened

DEBUG: Final = "SEATRIAL_DEBUG"
INTERRUPTED: Final = 130

HELP: Final = """Carry a machine-learning model from its source to production, and take it back when production says no.

A model is a folder in models/. `release` carries it through every gate, on this machine, against a real Triton, a real
S3 API, a weighted gateway and MLflow; all of it runs in the sandbox, which `release` starts when it is down. `submit`
does it on a cluster; status, history, report, logs, rollback, settle and adopt work there with --context.

Example:
    seatrial release cart_abandonment
    seatrial status cart_abandonment
    seatrial rollback cart_abandonment --reason "complaints"

Exit codes: 0 done, 78 wrong input, 75 something needed is away (try again), 76 a digest or signature does not match,
1 a bug; `release` and `submit` also 10 refused, 11 rolled back, 12 superseded.
"""


def manual(text: str) -> str:
    """A help text whose example keeps its lines: click wraps every paragraph that does not begin with this mark."""
    return inspect.cleandoc(text).replace("\nExample:\n", "\n\b\nExample:\n")


app = typer.Typer(
    name="seatrial",
    help=manual(HELP),
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for command in (
    release.release,
    submit.submit,
    status.status,
    history.history,
    report.report,
    logs.logs,
    predict.predict,
    people.rollback,
    people.settle,
    people.adopt,
    drill.drill,
    sandbox.up,
    sandbox.down,
    render.render,
):
    app.command(help=manual(command.__doc__ or ""))(command)


def main() -> None:
    """Run the command of this process's arguments, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our marks shows others, and ends nothing
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of one command."""
    try:
        code = app(arguments or ["--help"], standalone_mode=False)
    except BaseException as error:  # noqa: BLE001 - every way to end is told from the others below
        return _ended_by(error)
    return code if isinstance(code, int) else 0


def _ended_by(error: BaseException) -> int:
    match error:
        case StepError():
            code = _complain(str(error), error.exit_code)
        case typer.Exit():
            code = error.exit_code
        case typer.Abort() | KeyboardInterrupt():
            code = _complain("interrupted", INTERRUPTED)
        case typer.TyperException():
            code = _usage(error)
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; nor fails the last flush
            code = 0
        case OSError() if (known := of_disk(error)) is not None:
            code = _complain(f"{known} (SEATRIAL_HOME moves all local state)", known.exit_code)
        case Exception():
            code = _bug(error)
        case _:
            raise error
    return code


def _usage(error: Exception) -> int:
    message = getattr(error, "format_message", lambda: str(error))()
    return _complain(f"{message[0].lower()}{message[1:].rstrip('.')}; see --help", InvalidInput.exit_code)


def _bug(error: Exception) -> int:
    if os.environ.get(DEBUG):
        traceback.print_exc()
    place = _saved(traceback.format_exc())
    what = f"{type(error).__name__}: {shortened(error)}"
    return _complain(f"this is a bug in seatrial: {what}; the traceback is in {place}", StepError.exit_code)


def _saved(text: str) -> Path:
    folder = home() / "errors"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def _complain(message: str, code: int) -> int:
    line = f"error: {' '.join(message.split())}"
    in_red = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    sys.stderr.write(f"\x1b[31m{line}\x1b[0m\n" if in_red else f"{line}\n")
    return code


if __name__ == "__main__":
    main()
