"""The owner's code, started apart: its own process group, an environment without ours, bubblewrap where it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Final

from seatrial.errors import InvalidInput
from steps.train_model import descendants

OUTPUT_MAX: Final = 1 << 20
"""Bytes of the owner's output that are kept in the log; the rest is counted and dropped."""
_CHUNK: Final = 65_536
_CODE: Final = Path(__file__).resolve().parents[2]
_SIGNALLED: Final = 128
"""bubblewrap ends with this and the number of the signal that killed what it ran."""
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/sys")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the child ended."""

    exit_code: int
    """Negative: killed by that signal."""
    isolation: str
    """`bubblewrap` or `process`, for the training record."""


def run(work: Path, source: Path, *, deadline_s: float) -> Ended:
    """Run `steps.train_model.child` on `work`; its output goes to this step's stderr.

    Args:
        work: The folder that it may write to.
        source: The model's folder, which it may read.
        deadline_s: Seconds after which it is killed, with all that it started.

    Raises:
        InvalidInput: The deadline passed.
    """
    apart = bubblewrap_works()
    command = [sys.executable, "-m", "steps.train_model.child", str(work)]
    with descendants.ended_at_exit():
        child = subprocess.Popen(
            [*(_bubblewrap(work, source) if apart else []), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(work, source),
            cwd=work,
            start_new_session=True,
        )
        # What it started may hold the pipe open after it: the thread ends once those are ended, or with the process.
        reader = threading.Thread(target=_pass_on, args=(child.stdout,), daemon=True)
        reader.start()
        try:
            exit_code = child.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired as error:
            raise InvalidInput(
                f"training took longer than its deadline_s of {deadline_s:g} s and was stopped"
            ) from error
        finally:
            descendants.end_group(child)
    reader.join(timeout=5)
    if apart and exit_code > _SIGNALLED:
        exit_code = _SIGNALLED - exit_code
    return Ended(exit_code=exit_code, isolation="bubblewrap" if apart else "process")


def _environment(work: Path, source: Path) -> dict[str, str]:
    """No endpoint, credential or key of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "CUDA_VISIBLE_DEVICES") if name in os.environ}
    inherited = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {
        **kept,
        "HOME": str(work),
        "TMPDIR": str(work),
        # The image keeps the libraries on PYTHONPATH.
        "PYTHONPATH": os.pathsep.join([str(_CODE), *inherited, str(source)]),
        "PYTHONUNBUFFERED": "1",
        "PYTHONSAFEPATH": "1",
        "DO_NOT_TRACK": "1",
    }


def _bubblewrap(work: Path, source: Path) -> list[str]:
    """No network, no other process, no file but the system's, Python's, ours and the model's; only `work` is writable.

    Not shown are home folders and the sandbox's own state, where keys and credentials lie.
    """
    python = (sys.prefix, sys.base_prefix, Path(sys.executable).resolve().parents[1])
    inherited = (entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)
    shown = [*_SYSTEM, *python, *inherited, _CODE / "seatrial", _CODE / "steps", source]
    devices = sorted(Path("/dev").glob("nvidia*"))
    return [
        "bwrap", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc",  # noqa: S108
        *(word for path in shown for word in ("--ro-bind-try", str(path), str(path))),
        *(word for path in devices for word in ("--dev-bind", str(path), str(path))),
        "--bind", str(work), str(work), "--chdir", str(work),
        "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent",
    ]  # fmt: skip


@cache
def bubblewrap_works() -> bool:
    """Whether bubblewrap is installed and may make namespaces here."""
    if shutil.which("bwrap") is None:
        return False
    tried = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-net", "--unshare-pid", "true"]
    try:
        return subprocess.run(tried, check=False, capture_output=True, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _pass_on(output: IO[bytes]) -> None:
    """The owner's output, to stderr: stdout stays JSON lines. What is over the limit is read and dropped."""
    size = 0
    with output:
        while chunk := os.read(output.fileno(), _CHUNK):
            kept = chunk[: max(0, OUTPUT_MAX - size)]
            size += len(chunk)
            sys.stderr.write(kept.decode("utf-8", "replace"))
    if size > OUTPUT_MAX:
        sys.stderr.write(f"\n… {size - OUTPUT_MAX} bytes of output left out\n")
