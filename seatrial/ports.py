"""What the rules and steps need from outside, in our words; `adapters` fills them, tests fill them in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

Manifest = dict[str, Any]
"""A Kubernetes object as the API gives and takes it."""


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """The moment, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Store(Protocol):
    """An object store; keys are paths without a leading slash."""

    def read(self, key: str) -> bytes | None:
        """The object's content; None when there is none."""
        ...

    def write(self, key: str, data: bytes) -> None:
        """Create or replace."""
        ...

    def write_once(self, key: str, data: bytes) -> bool:
        """Create; False, and nothing written, when the key is taken. Exactly one of many racing writers gets True."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """Every key that starts with `prefix`, sorted."""
        ...


class Images(Protocol):
    """Container images, by digest."""

    def labels(self, image: str) -> Mapping[str, str] | None:
        """The labels of `repository@sha256:…`; None: whoever keeps it does not let this step read.

        Raises InvalidInput when there is no such image, IntegrityError when what came is not what its digest says.
        """
        ...


class Services(Protocol):
    """InferenceServices of one namespace."""

    def get(self, name: str) -> Manifest | None:
        """The object; None when there is none."""
        ...

    def create(self, manifest: Manifest) -> None:
        """Create; the same object already there is fine, another one under its name is an IntegrityError."""
        ...

    def delete(self, name: str) -> None:
        """Delete; nothing there is fine."""
        ...

    def names(self, model_name: str) -> list[str]:
        """The services of a model's versions."""
        ...


class Routes(Protocol):
    """HTTPRoutes of one namespace."""

    def get(self, name: str) -> Manifest | None:
        """The object; None when there is none."""
        ...

    def create(self, manifest: Manifest) -> None:
        """Create. Raises Conflict when the name is taken."""
        ...

    def replace(self, name: str, patch: Manifest, *, resource_version: str) -> None:
        """Merge-patch the object read at `resource_version`. Raises Conflict when it changed since."""
        ...

    def delete(self, name: str, *, resource_version: str) -> None:
        """Delete the object read at `resource_version`. Raises Conflict when it changed since."""
        ...


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back for one inference request."""

    status: int
    """HTTP status; 0 when no answer came."""
    version: int | None
    """The version that says it answered; None when the answer does not tell."""
    outputs: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Output tensor name → values, flattened in row-major order."""
    error: str = ""
    """The server's or the connection's own words, cut short; empty when all is well."""
    seconds: float = 0.0


class Predictions(Protocol):
    """A model behind the gateway, asked as a client would."""

    def ask(self, model_name: str, request: bytes, *, arm: str | None = None) -> Answer:
        """Send one Open Inference Protocol request body (JSON); `arm="canary"` reaches the canary at weight 0."""
        ...


@dataclass(frozen=True, kw_only=True)
class ArmCounts:
    """Requests through the weighted rule that one Service answered, since the gateway started."""

    requests: int
    errors: int
    """Of these, answered with 4xx or 5xx, or not at all."""


@dataclass(frozen=True, kw_only=True)
class Scrape:
    """All counts of one model, read at once."""

    at: datetime
    versions: Mapping[int, ArmCounts]


class TrafficCounts(Protocol):
    """What the gateway counted."""

    def scrape(self, model_name: str) -> Scrape:
        """Counts per version of the weighted rule; header-routed requests are not in them."""
        ...


class Workflows(Protocol):
    """Runs, as Argo keeps them."""

    def get(self, name: str) -> Manifest | None:
        """The Workflow with its status.nodes; None when there is none."""
        ...


class Sources(Protocol):
    """Where models' folders come from."""

    def models(self, revision: str) -> list[str]:
        """The models at a revision, sorted."""
        ...

    def export(self, model_name: str, revision: str, into: Path) -> str:
        """Write the model's folder at `revision` to `into`; give back the exact revision that it is."""
        ...


class Tracking(Protocol):
    """Where training runs are written down for people."""

    def log(self, *, model_name: str, record: Mapping[str, Any], files: Iterable[Path]) -> str:
        """Write one run; give back its id."""
        ...
