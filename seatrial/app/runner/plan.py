"""A run: the manifest and what it was started with; and what `advance` asks the loop to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from seatrial.app.runner.manifest import Manifest

Shutdown = Literal["", "Stop", "Terminate"]


@dataclass(frozen=True)
class Run:
    """One run of a manifest."""

    manifest: Manifest
    name: str
    uid: str
    namespace: str
    parameters: Mapping[str, str]
    entrypoint: str
    created: float
    """Seconds since 1970."""
    shutdown: Shutdown = ""
    """Stop: running steps end, the exit handler runs. Terminate: all ends at once, without it."""


@dataclass(frozen=True)
class Start:
    """Start the process of a node."""

    node_id: str
    args: tuple[str, ...]
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Kill:
    """End the process of a node; `at_once`: without asking first."""

    node_id: str
    at_once: bool = False


@dataclass(frozen=True)
class Acquire:
    """Try to take a lock for a node that waits."""

    node_id: str
    lock: str


@dataclass(frozen=True)
class Release:
    """Let a lock go."""

    lock: str


@dataclass(frozen=True)
class Wake:
    """Ask again at this moment, in seconds since 1970."""

    at: float


Action = Start | Kill | Acquire | Release | Wake
