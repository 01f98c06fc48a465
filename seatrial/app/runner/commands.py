"""Image → the program that it is on this machine: the one place where an image gets its meaning here."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

STEPS: Final = Path(__file__).resolve().parents[3] / "steps"
BUILDER_IMAGE: Final = "seatrial/kaniko"

Commands = Mapping[str, Sequence[str]]


def commands() -> Commands:
    """Every step's image and the builder's."""
    packages = sorted(path.parent.name for path in STEPS.glob("*/contract.py"))
    steps = {f"seatrial/{name.replace('_', '-')}": (sys.executable, "-m", f"steps.{name}") for name in packages}
    return {**steps, BUILDER_IMAGE: (sys.executable, "-m", "seatrial.app.builder")}
