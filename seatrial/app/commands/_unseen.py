# ruff: noqa: ARG002 - every method says the same, whatever it is asked
"""What a person has no way to: a store or a gateway that says why, each time it is asked."""

from __future__ import annotations

from seatrial.errors import StepError, Unavailable
from seatrial.ports import Answer, Scrape


class Unseen:
    """The ports `Store`, `Predictions` and `TrafficCounts`, out of reach."""

    def __init__(self, why: StepError) -> None:
        self._why = Unavailable(str(why))

    def read(self, key: str) -> bytes | None:
        """Say why not."""
        raise self._why

    def write(self, key: str, data: bytes) -> None:
        """Say why not."""
        raise self._why

    def write_once(self, key: str, data: bytes) -> bool:
        """Say why not."""
        raise self._why

    def keys(self, prefix: str) -> list[str]:
        """Say why not."""
        raise self._why

    def ask(self, model_name: str, request: bytes, *, arm: str | None = None) -> Answer:
        """Say why not."""
        return Answer(status=0, version=None, error=str(self._why))

    def scrape(self, model_name: str) -> Scrape:
        """Say why not."""
        raise self._why
