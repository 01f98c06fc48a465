"""`make run` on a fresh clone with empty package caches, again, and with other training parameters."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
MODEL = "cart_abandonment"
LIMIT_S = 900


@dataclass(frozen=True)
class Run:
    """One `make run`."""

    what: str
    seconds: float
    last_line: str


@contextmanager
def clone() -> Iterator[Path]:
    """A fresh clone of what is committed; nothing of it is left, and its sandbox neither."""
    with TemporaryDirectory(prefix="seatrial-bench-") as place:
        folder = Path(place, "seatrial")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["make", "down"], cwd=folder, check=False, capture_output=True)


def measure(folder: Path) -> list[Run]:
    """Three releases in the clone; afterwards v2 serves and v1 is kept."""
    runs = [_run(folder, "fresh clone, empty package caches"), _run(folder, "again, nothing changed")]
    spec = folder / "models" / MODEL / "model.yaml"
    text, changed = re.subn(r"^    C: .*$", "    C: 0.2", spec.read_text(), flags=re.MULTILINE)
    assert changed == 1, "the example's parameter C is what is changed"
    spec.write_text(text)
    return [*runs, _run(folder, "again, other training parameters: v2 over v1 by canary")]


def _run(folder: Path, what: str) -> Run:
    caches = {"UV_CACHE_DIR": str(folder.parent / "uv-cache"), "PIP_CACHE_DIR": str(folder.parent / "pip-cache")}
    start = time.monotonic()
    done = subprocess.run(
        ["make", "run", f"MODEL_NAME={MODEL}"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))} | caches,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    seconds = time.monotonic() - start
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return Run(what, seconds, done.stdout.strip().splitlines()[-1])
