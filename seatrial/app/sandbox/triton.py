"""Triton's own environment under `<home>/triton`: installed once, again only when what it is made of changed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from seatrial import digests
from seatrial.errors import InvalidInput, StepError, Unavailable, shortened

ROOT: Final = Path(__file__).resolve().parents[3]
LOCK: Final = ROOT / "locks" / "triton.txt"
SERVING: Final = ROOT / "infra" / "serving"
STAMP: Final = "inputs.sha256"
_INSTALL_S: Final = 600


def install_triton(home: Path, say: Callable[[str], None]) -> Path:
    """Make sure that `<home>/triton/bin/tritonserver` is there and current; give back its path.

    Safe to run at once from several processes, and after a crash: the folder appears whole or not at all.

    Raises:
        InvalidInput: uv, or a file of this checkout, is not there.
        Unavailable: The packages could not be fetched.
    """
    folder = home.absolute() / "triton"
    wrapper = folder / "bin" / "tritonserver"
    wanted = _inputs()
    if _stamp(folder) == wanted and wrapper.exists():
        return wrapper
    home.mkdir(parents=True, exist_ok=True)
    with exclusive(home / "triton.lock"):
        if _stamp(folder) != wanted or not wrapper.exists():
            say("installing Triton's own environment (about 300 MB, once)")
            _replace(folder, wanted)
    return wrapper


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file: one process at a time, freed by the system when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _inputs() -> str:
    """The digest of all that the environment is made from."""
    try:
        files = {
            path.relative_to(ROOT).as_posix(): digests.of_file(path)
            for path in (LOCK, *sorted(SERVING.rglob("*.py")))
            if "__pycache__" not in path.parts
        }
    except OSError as error:
        raise InvalidInput(f"this checkout lacks a file that Triton's environment is made from: {error}") from error
    return digests.of_json({"files": files, "python": sys.version, "base": sys.base_prefix})


def _stamp(folder: Path) -> str:
    try:
        return (folder / STAMP).read_text().strip()
    except OSError:
        return ""


def _replace(folder: Path, wanted: str) -> None:
    new = folder.with_name(f"triton.new-{os.getpid()}")
    for leftover in folder.parent.glob("triton.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        _build(new)
        (new / STAMP).write_text(wanted + "\n")
        old = folder.with_name(f"triton.old-{os.getpid()}")
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _build(new: Path) -> None:
    uv, python = _uv(new.parent), str(new / "venv" / "bin" / "python")
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(new / "venv")])
    options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    _run([uv, "pip", "install", *options, "--python", python, "-r", str(LOCK)])
    _run([python, str(SERVING / "assemble.py"), str(new)])


def _uv(home: Path) -> str:
    candidates = [os.environ.get("UV"), *(place / "uv" / "bin" / "uv" for place in (home, ROOT / ".seatrial")), "uv"]
    for candidate in candidates:
        if candidate and shutil.which(str(candidate)):
            return str(candidate)
    raise InvalidInput(f"uv is needed to install Triton; looked at $UV, {home}/uv/bin/uv and PATH: run `make run`")


def _run(command: list[str]) -> None:
    # A virtual environment of the caller must not be taken for the one to install into.
    surroundings = {k: v for k, v in os.environ.items() if k not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}}
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_S, env=surroundings)
    except subprocess.CalledProcessError as error:
        raise Unavailable(
            f"installing Triton's environment failed at {command[1]}: {shortened(error.stderr)}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"installing Triton's environment took longer than {_INSTALL_S} s") from error
    except OSError as error:
        raise StepError(f"cannot start {command[0]}: {error}") from error
