"""What packaging needs of a Triton that runs; `adapters.triton` starts a real one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from seatrial.ports import Answer


class Server(Protocol):
    """A Triton that serves one version of one model."""

    @property
    def ready_s(self) -> float:
        """Seconds from its start until the version was ready."""
        ...

    def ask(self, request: bytes) -> Answer:
        """Send one Open Inference Protocol request body (JSON) to the version."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """What Triton counted for the version: `inference_count`, `execution_count` and the rest of its statistics."""
        ...


class Boot(Protocol):
    """Starts a Triton on a model repository."""

    def __call__(
        self, repository: Path, *, model_name: str, version: int, log: Path, within_s: float
    ) -> AbstractContextManager[Server]:
        """A Triton on `repository`, ready, and stopped when the context ends.

        Args:
            repository: Folder of `<model>/config.pbtxt` and `<model>/<version>/…`.
            model_name: The model to wait for.
            version: The version to wait for.
            log: File for what Triton prints.
            within_s: Seconds in which it must be ready.

        Raises:
            InvalidInput: Triton cannot serve this repository; the message holds its own words.
            Unavailable: There is no Triton, or it did not answer in time.
        """
        ...
