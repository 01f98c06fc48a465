"""How every step runs: parse the arguments, run, write the outputs, exit with the right code.

Small values come as `--kebab-name text`, files at `in/<name>`; files go to `out/<name>`, small values to
`out/params/<name>`, all under $SEATRIAL_IO. Everything is written under a temporary name and renamed, the parameters
last: a reader sees all of a step's outputs or none.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from seatrial.errors import InvalidInput, StepError, Unavailable, of_disk, shortened
from steps._contract import Contract, Step, kebab

EVENT_TEXT_MAX = 4096
TERMINATION_LOG = "SEATRIAL_TERMINATION_LOG"
"""Where a step that fails says why; in the cluster Kubernetes has its own place for that."""
LAST_WORDS_MAX_BYTES = 2048
"""Kubernetes keeps 4096 bytes of a container's and 12 KiB of a pod's termination messages."""

In = TypeVar("In", bound=Contract)
Out = TypeVar("Out", bound=Contract)


def main(
    name: str,
    step: Step,
    inputs_type: type[In],
    run: Callable[[In, Path], Out],
    arguments: list[str] | None = None,
    *,
    exit_code: Callable[[Out], int] = lambda _: 0,
) -> None:
    """Run a step and exit.

    Args:
        name: The step's package name, like evaluate_model.
        step: How it runs; its summary is printed by `--help`.
        inputs_type: What it takes.
        run: The step: its inputs and a scratch folder → its outputs. Output files lie in the scratch folder.
        arguments: The command line; None: this process's own.
        exit_code: What to exit with after the outputs are written; a gate that refuses is done, and exits 0.
    """
    started = time.monotonic()
    arguments = sys.argv[1:] if arguments is None else arguments
    if "--help" in arguments or "-h" in arguments:
        print(usage(name, step, inputs_type))  # noqa: T201 - asked for on the terminal
        sys.exit(0)
    root = Path(os.environ.get("SEATRIAL_IO", "/io"))
    try:
        outputs, written = _ran(name, inputs_type, run, arguments, root)
    except StepError as error:
        sys.stderr.write(f"{name}: {error}\n")
        _failed(name, error, str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a bug of ours, and must end as one
        traceback.print_exc()
        _failed(name, error, shortened(error), StepError.exit_code)
    _done(name, outputs, written, time.monotonic() - started)
    sys.exit(exit_code(outputs))


def _ran(
    name: str, inputs_type: type[In], run: Callable[[In, Path], Out], arguments: list[str], root: Path
) -> tuple[Out, int]:
    """The step's outputs, written; and their bytes."""
    inputs = parse(inputs_type, arguments, root / "in")
    event("start", step=name, inputs=inputs.model_dump(mode="json"))
    try:
        scratch = _fresh(root / "out" / f".{name}.partial")
        with _ending_what_it_started():
            outputs = run(inputs, scratch)
        written = _write(outputs, root / "out")
        shutil.rmtree(scratch)
    except OSError as error:
        if isinstance(full := of_disk(error), Unavailable):
            raise full from error
        raise
    return outputs, written


def _done(name: str, outputs: Contract, written: int, seconds: float) -> None:
    """The one line that tells all of it."""
    event(
        "done",
        step=name,
        outputs=outputs.model_dump(mode="json", exclude=set(_files(outputs))),
        bytes=written,
        seconds=round(seconds, 3),
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _failed(name: str, error: Exception, text: str, exit_code: int) -> NoReturn:
    """Say why in the log and to Kubernetes, and exit."""
    kind = type(error).__name__
    event("failed", step=name, error=text, kind=kind, exit_code=exit_code)
    _last_words(text if isinstance(error, StepError) else f"{kind}: {text}")
    sys.exit(exit_code)


def event(what: str, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """One JSON line on stdout: at the start, per outside effect, at the end."""
    line = json.dumps({"event": what, **facts}, default=str, ensure_ascii=False)
    if len(line) > EVENT_TEXT_MAX:
        line = json.dumps(
            {"event": what, **{key: shortened(value) for key, value in facts.items()}}, ensure_ascii=False
        )
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _ending_what_it_started() -> Iterator[None]:
    """SIGTERM ends the step by way of its `finally` clauses: a server that it booted must not outlive it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what is being ended is ended whole
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _last_words(text: str) -> None:
    """Why it failed, where Kubernetes looks for it: Argo then says it in the node's message."""
    place = Path(os.environ.get(TERMINATION_LOG, "/dev/termination-log"))
    if place.is_file():
        with contextlib.suppress(OSError):
            place.write_bytes(" ".join(text.split()).encode(errors="replace")[:LAST_WORDS_MAX_BYTES])


def parse(inputs_type: type[In], arguments: list[str], files: Path) -> In:
    """The inputs on a command line, and where its files lie.

    Raises:
        InvalidInput: An argument is unknown, missing, given twice or no value of its type; or a file is not there.
    """
    values: dict[str, Any] = {}
    names = {f"--{name}": name.replace("-", "_") for name in inputs_type.parameters()}
    for flag, text in zip(arguments[::2], [*arguments[1::2], None], strict=False):
        if flag not in names:
            raise InvalidInput(f"unknown argument {shortened(flag)!r}; this step takes {sorted(names)}")
        if text is None:
            raise InvalidInput(f"{flag} needs a value after it")
        if names[flag] in values:
            raise InvalidInput(f"{flag} is given twice")
        values[names[flag]] = text
    for name in inputs_type.artifacts():
        path = files / name
        if not path.exists():
            raise InvalidInput(f"the input file {name!r} is not at {path}")
        values[name.replace("-", "_")] = str(path)
    try:
        return inputs_type.model_validate_strings(values)
    except ValidationError as error:
        faults = (f"--{kebab(str(f['loc'][0]))}: {f['msg']}, got {shortened(repr(f['input']))}" for f in error.errors())
        raise InvalidInput("; ".join(faults)) from error


def usage(name: str, step: Step, inputs_type: type[Contract]) -> str:
    """The text of `--help`."""
    lines = [f"python -m steps.{name}: {step.summary}", ""]
    lines += [f"  --{n} TEXT   {f.description}" for n, f in inputs_type.parameters().items()]
    lines += [f"  $SEATRIAL_IO/in/{n}   {f.description}" for n, f in inputs_type.artifacts().items()]
    return "\n".join(lines)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _files(outputs: Contract) -> dict[str, Path]:
    return {n: v for n in type(outputs).model_fields if isinstance(v := getattr(outputs, n), Path)}


def _write(outputs: Contract, out: Path) -> int:
    """Rename files and folders to their places, then write the parameters; the bytes of all of it."""
    written = 0
    for name, path in _files(outputs).items():
        place = out / kebab(name)
        if place.is_dir():
            shutil.rmtree(place)
        path.rename(place)
        inside = [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
        written += sum(p.stat().st_size for p in inside)
    params = out / "params"
    params.mkdir(parents=True, exist_ok=True)
    for name in type(outputs).parameters():
        value = getattr(outputs, name.replace("-", "_"))
        text = value if isinstance(value, str) else json.dumps(value)
        partial = params / f".{name}.partial"
        partial.write_text(text, encoding="utf-8")
        partial.rename(params / name)
        written += len(text.encode())
    return written
