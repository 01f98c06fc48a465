"""The ledger: what served when, and why; append-only, each entry holds the digest of the one before.

The HTTPRoute is the truth of who serves, and carries the sequence number of its last change. The ledger is written
after the route, at that number; an entry that a crash left out is written later, as `unrecorded`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from seatrial import digests
from seatrial.digests import Digest
from seatrial.errors import IntegrityError
from seatrial.names import ModelName
from seatrial.spec import Closed

Action = Literal["begin", "shift", "promote", "go_back", "rollback", "settle", "adopt", "unrecorded"]

FIRST: Final = digests.of_bytes(b"seatrial ledger")
"""What the first entry holds as the digest of the one before."""


class Entry(Closed):
    """One change of a model's route."""

    sequence: int = Field(ge=1, description="the route's ledger sequence after the change")
    before: Digest = Field(description="digest of the entry before; FIRST for the first")
    model_name: ModelName
    at: datetime = Field(description="UTC, when it was recorded")
    action: Action
    weights: dict[str, int] = Field(description="version → percent, after the change")
    champion: int | None = Field(description="version that serves; None: nobody yet")
    by: str = Field(description="release id, or the person's name")
    reason: str

    @property
    def digest(self) -> str:
        """What the next entry holds."""
        return digests.of_json(self.model_dump(mode="json"))


def prefix(model_name: str) -> str:
    """Where the store keeps a model's entries."""
    return f"models/{model_name}/ledger/"


def key(entry: Entry) -> str:
    """Where the store keeps one entry, written once; keys sort by sequence."""
    return f"{prefix(entry.model_name)}{entry.sequence:08d}.json"


def verify(entries: Iterable[Entry]) -> None:
    """Check that the chain is whole.

    Raises:
        IntegrityError: An entry is missing, out of order or altered; the first break is named.
    """
    before, sequence = FIRST, 0
    for entry in entries:
        if entry.sequence != sequence + 1:
            raise IntegrityError(f"ledger entry {sequence + 1} is missing; the next one found is {entry.sequence}")
        if entry.before != before:
            raise IntegrityError(f"ledger entry {entry.sequence} does not follow entry {sequence}: one was altered")
        before, sequence = entry.digest, entry.sequence
