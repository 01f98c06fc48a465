"""The ledger: what served when, and why; append-only, each entry holds the digest of the one before.

The HTTPRoute is the truth of who serves, and carries the sequence number of its last change. The ledger is written
after the route, at that number; an entry that a crash left out is written later, as `unrecorded`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pydantic import Field, ValidationError

from seatrial import digests
from seatrial.digests import Digest
from seatrial.errors import IntegrityError, shortened
from seatrial.names import ModelName
from seatrial.ports import Clock, Store
from seatrial.spec import Closed

Action = Literal["begin", "shift", "promote", "go_back", "rollback", "settle", "adopt", "unrecorded"]

FIRST: Final = digests.of_bytes(b"seatrial ledger")
"""What the first entry holds as the digest of the one before."""

GAP_MAX: Final = 1000
"""Most unrecorded changes in a row that are filled in."""


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


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What is known of one change of a route; the route itself carries it for its latest change."""

    sequence: int
    action: Action
    weights: Mapping[int, int]
    champion: int | None
    by: str
    reason: str


class Book:
    """A model's ledger in a store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def entries(self, model_name: str, *, latest: int | None = None) -> list[Entry]:
        """Every entry, by sequence, or the `latest` ones only; `verify` tells whether the whole chain is whole."""
        keys = self._store.keys(prefix(model_name))
        return [self._read(key) for key in (keys if latest is None else keys[-latest:])]

    def last(self, model_name: str) -> Entry | None:
        """The entry with the highest sequence."""
        return self._below(model_name, None)

    def append(self, model_name: str, facts: Iterable[Fact]) -> None:
        """Write the entries of `facts` that are not there yet, and one `unrecorded` for each gap before them.

        Of many racing writers one wins each sequence; the others chain on to what stands there. A writer that gives
        the fact of the change before its own as well leaves no gap, whoever comes first.

        Raises:
            IntegrityError: The facts are further from the last entry than any crash explains.
        """
        known = {fact.sequence: fact for fact in facts if fact.sequence > 0}
        if not known:
            return
        last = self._below(model_name, min(known))
        before, sequence = (FIRST, 0) if last is None else (last.digest, last.sequence)
        if min(known) - sequence > GAP_MAX:
            raise IntegrityError(
                f"the ledger of {model_name} ends at {sequence}, the route is at {min(known)}: more changes than "
                f"{GAP_MAX} unrecorded ones; one of the two was replaced"
            )
        for number in range(sequence + 1, max(known) + 1):
            before = self._write_once(self._entry(model_name, number, known.get(number), before)).digest

    def _entry(self, model_name: str, sequence: int, fact: Fact | None, before: str) -> Entry:
        return Entry(
            sequence=sequence,
            before=before,
            model_name=model_name,
            at=self._clock.now(),
            action="unrecorded" if fact is None else fact.action,
            weights={} if fact is None else {str(version): percent for version, percent in fact.weights.items()},
            champion=None if fact is None else fact.champion,
            by="unknown" if fact is None else fact.by,
            reason="the one who changed the route did not come to record it" if fact is None else fact.reason,
        )

    def _write_once(self, entry: Entry) -> Entry:
        """The entry that stands in the place: this one, or the one that was there first."""
        if self._store.write_once(key(entry), digests.canonical(entry.model_dump(mode="json"))):
            return entry
        return self._read(key(entry))

    def _below(self, model_name: str, sequence: int | None) -> Entry | None:
        """The last entry before `sequence`; None: the last of all."""
        start = prefix(model_name)
        keys = [k for k in self._store.keys(start) if sequence is None or k < f"{start}{sequence:08d}"]
        return self._read(keys[-1]) if keys else None

    def _read(self, key: str) -> Entry:
        raw = self._store.read(key)
        try:
            return Entry.model_validate_json(raw or b"")
        except ValidationError as error:
            raise IntegrityError(f"{key} is no ledger entry: {shortened(error)}") from error
