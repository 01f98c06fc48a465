"""What run_canary needs from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from seatrial.canary.answers import Tally
from seatrial.ports import Clock, Predictions, Store, TrafficCounts
from seatrial.route import Router
from seatrial.triton.requests import Example


class Replay(Protocol):
    """Held-out requests sent beside the real traffic, in the background."""

    def start(
        self, model_name: str, examples: Sequence[Example], *, version: int, per_s: float, arm: str | None
    ) -> None:
        """Send them shuffled, again and again, until stopped.

        Args:
            model_name: The model.
            examples: Requests with the right answers of `version`.
            version: Whose answers are judged.
            per_s: Requests a second, at most.
            arm: `canary`: by header, so that they are not counted as traffic; None: as a client would.
        """
        ...

    def so_far(self) -> Tally:
        """What came back since the start."""
        ...

    def stop(self) -> Tally:
        """Send no more, wait a moment for what is under way; the whole tally. Not started or stopped before is fine."""
        ...


@dataclass(frozen=True, kw_only=True)
class Ports:
    """All of it."""

    store: Store
    router: Router
    predictions: Predictions
    traffic: TrafficCounts
    replay: Replay
    clock: Clock
    signing_key: Ed25519PrivateKey
    trusted_keys: tuple[Ed25519PublicKey, ...]
    promote_on_replay: bool
    """Whether replayed requests count as traffic; else they go by header and prove answers only."""
