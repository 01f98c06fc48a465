"""The README's commands, in its order, in a fresh clone: each does what the README says of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(1500)]


@dataclass(frozen=True)
class Expected:
    """What a command of the README must end with."""

    last_line: str
    exit_code: int = 0
    within_s: float = 300


EXPECTED = {
    "make run MODEL_NAME=cart_abandonment": [
        Expected(r"promoted cart_abandonment v1  bundle sha256:[0-9a-f]+…?  image sha256:[0-9a-f]+…?  \d+ s"),
        Expected(r"unchanged cart_abandonment v1 .*", within_s=60),
        Expected(r"promoted cart_abandonment v2  bundle sha256:[0-9a-f]+…?  image sha256:[0-9a-f]+…?  \d+ s"),
    ],
    "seatrial status cart_abandonment": [Expected(r"(?s).*")],
    "seatrial predict cart_abandonment": [Expected(r".*\bv1\b.*")],
    "sed -i": [Expected(r"")],
    "seatrial drill cart_abandonment --fault errors": [Expected(r"rolled_back cart_abandonment v3 .*")],
    "seatrial report cart_abandonment": [Expected(r"cart_abandonment-[a-z0-9-]+\.html")],
    "seatrial logs cart_abandonment run-canary": [Expected(r"(?s).*")],
    "seatrial rollback cart_abandonment": [Expected(r".*\bv1\b.*")],
    "make render": [Expected(r"(?s).*")],
    "make run MODEL_NAME=my_model": [Expected(r"promoted my_model v1 .*")],
    "mkdir models/my_model": [Expected(r"")],
    "$EDITOR": [Expected(r"")] * 3,
    "seatrial down": [Expected(r"(?s).*")],
}
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
"""What `make test` hands to its children; a person at a terminal has none of it."""

# `make test` is what runs this test; activating the environment is done for every command here.
NOT_RUN = ("make test", ". .venv/bin/activate")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh clone, whose sandbox is taken down in the end."""
    folder = tmp_path_factory.mktemp("readme") / "seatrial"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    yield folder
    if (folder / ".venv").is_dir():
        subprocess.run(["make", "down"], cwd=folder, check=False, capture_output=True)


def commands() -> list[str]:
    """Every command line of the README's sh blocks, without its comment."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+#.*$", "", line).strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(NOT_RUN)]


def run(command: str, clone: Path, expected: Expected) -> None:
    editor = clone.parent / "editor"  # the README's person copies an example and renames it
    editor.write_text(
        '#!/bin/sh\nset -e\nname=$(basename "$1")\n'
        'sed s/cart_abandonment/my_model/g "models/cart_abandonment/$name" > "$1"\n'
    )
    editor.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    environment = {**inherited, "EDITOR": str(editor), "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", f"[ ! -d .venv ] || . .venv/bin/activate; {command}"],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=expected.within_s,
        check=False,
    )
    told = f"$ {command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    assert done.returncode == expected.exit_code, told
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    assert re.fullmatch(expected.last_line, last.strip()), told


def test_every_command_of_the_readme_does_what_the_readme_says(clone: Path) -> None:
    left = {prefix: list(wanted) for prefix, wanted in EXPECTED.items()}
    for command in commands():
        prefix = next((p for p in sorted(left, key=len, reverse=True) if command.startswith(p)), None)
        assert prefix is not None, f"the README has a command that this test does not know: {command}"
        assert left[prefix], f"the README has `{command}` more often than this test knows"
        if command.startswith("make run MODEL_NAME=my_model"):
            data = next((clone / ".seatrial" / "data").rglob("*.parquet"))
            shutil.copy(data, clone.parent / "rows.parquet")
            command = command.replace("/path/to/rows.parquet", str(clone.parent / "rows.parquet"))  # noqa: PLW2901
        run(command, clone, left[prefix].pop(0))
    assert not any(left.values()), f"the README lacks commands that this test expects: {left}"
