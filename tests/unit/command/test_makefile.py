"""The Makefile hands values on as they were given."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["MODEL_NAME", "DATA", "REVISION", "REASON"])
@pytest.mark.parametrize(
    "value", ["$(shell touch {0})", "$(id)", "`touch {0}`", "'; touch {0}; '", "$${x}", "a b", "{{x}}"]
)
def test_a_value_is_text_and_nothing_in_it_runs(tmp_path: Path, name: str, value: str) -> None:
    mark = tmp_path / "ran"
    given = value.replace("{0}", str(mark))
    probe = tmp_path / "probe.mk"
    probe.write_text(f"include {ROOT}/Makefile\nprobe: ; @printenv {name}\n")
    told = subprocess.run(
        ["make", "-s", "-f", str(probe), "probe", f"{name}={given}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == given + "\n"
    assert not mark.exists()
