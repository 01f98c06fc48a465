"""The evaluation gate tells an honest second version from a worse one, on splits that nobody chose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPLITS = 12

pytestmark = pytest.mark.integration


def test_honest_versions_pass_and_worse_ones_do_not_however_the_rows_are_split() -> None:
    command = [sys.executable, "-m", "bench.power", "cart_abandonment", str(SPLITS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=110)
    table = [line.strip("|").split("|") for line in done.stdout.splitlines() if line.startswith("| ")]
    shares = {name.strip(): int(passed.strip().removesuffix("%")) for name, _, _, passed in table[2:]}
    honest = [share for name, share in shares.items() if name.startswith("honest")]
    worse = [share for name, share in shares.items() if name.startswith("worse")]
    assert len(honest) == 5
    assert sum(honest) / len(honest) >= 80, done.stdout
    assert worse == [0] * 4, done.stdout
