"""One attempt at a canary: what was asked for, what is believed of it, and what it may touch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steps._papers import Papers
from steps.run_canary.contract import Inputs
from steps.run_canary.ports import Ports


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """Of one process; going back needs its inputs and ports only."""

    inputs: Inputs
    papers: Papers
    """Believed; their release bears this run's id."""
    ports: Ports
    scratch: Path
    """Where its outputs are written."""
