"""The owner's code, started apart: its own process group, an environment without ours, bubblewrap where it works."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from seatrial.errors import InvalidInput

OUTPUT_MAX: Final = 1 << 20
"""Bytes of the owner's output that are kept in the log; the rest is counted and dropped."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the child ended."""

    exit_code: int
    """Negative: killed by that signal."""
    isolation: str
    """`bubblewrap` or `process`, for the training record."""


def run(work: Path, source: Path, *, deadline_s: float) -> Ended:
    """Run `steps.train_model.child` on `work`.

    Args:
        work: The folder that it may write to.
        source: The model's folder, which it may read.
        deadline_s: Seconds after which it is killed, with all that it started.

    Raises:
        InvalidInput: The deadline passed.
    """
    apart = _bubblewrap_works()
    command = [sys.executable, "-m", "steps.train_model.child", str(work)]
    log = work / "output.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*(_bubblewrap(work, source) if apart else []), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(work, source),
            cwd=work,
            start_new_session=True,
        )
        try:
            exit_code = child.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired as error:
            raise InvalidInput(
                f"training took longer than its deadline_s of {deadline_s:g} s and was stopped"
            ) from error
        finally:
            _kill_group(child)
            _pass_on(log)
    return Ended(exit_code=exit_code, isolation="bubblewrap" if apart else "process")


def _environment(work: Path, source: Path) -> dict[str, str]:
    """No endpoint, credential or key of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "CUDA_VISIBLE_DEVICES") if name in os.environ}
    roots = [str(Path(__file__).resolve().parents[2]), str(source)]
    return {
        **kept,
        "HOME": str(work),
        "TMPDIR": str(work),
        "PYTHONPATH": os.pathsep.join(roots),
        "PYTHONUNBUFFERED": "1",
    }


def _bubblewrap(work: Path, source: Path) -> list[str]:
    """Read-only root, no network, no other process; only `work` can be written."""
    return [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",  # noqa: S108
        "--ro-bind", str(source), str(source), "--bind", str(work), str(work),
        "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent",
    ]  # fmt: skip


@cache
def _bubblewrap_works() -> bool:
    if shutil.which("bwrap") is None:
        return False
    tried = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-net", "--unshare-pid", "true"]
    return subprocess.run(tried, check=False, capture_output=True, timeout=10).returncode == 0


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """End whatever the child left running."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    child.wait()


def _pass_on(log: Path) -> None:
    """The owner's output goes to this step's stderr, so that stdout stays JSON lines."""
    size = log.stat().st_size
    with log.open("rb") as file:
        text = file.read(OUTPUT_MAX).decode("utf-8", "replace")
    sys.stderr.write(text)
    if size > OUTPUT_MAX:
        sys.stderr.write(f"\n… {size - OUTPUT_MAX} bytes of output left out\n")
