"""The ledger is one chain: no entry can be left out, moved or altered unseen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial import ledger
from seatrial.errors import IntegrityError
from seatrial.ledger import Entry


def chain(length: int) -> list[Entry]:
    entries: list[Entry] = []
    for sequence in range(1, length + 1):
        entries.append(
            Entry(
                sequence=sequence,
                before=entries[-1].digest if entries else ledger.FIRST,
                model_name="tea_orders",
                at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=sequence),
                action="shift",
                weights={"1": 100 - sequence, "2": sequence},
                champion=1,
                by="uid-1",
                reason="the plan",
            )
        )
    return entries


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_whole_chain_verifies(length: int) -> None:
    ledger.verify(chain(length))


@given(st.integers(0, 4))
def test_a_missing_entry_is_named_unless_it_is_the_last(place: int) -> None:
    entries = chain(5)
    del entries[place]
    if place == 4:
        ledger.verify(entries)
    else:
        with pytest.raises(IntegrityError, match=f"entry {place + 1} is missing"):
            ledger.verify(entries)


@given(st.integers(0, 3), st.sampled_from(["reason", "by", "weights", "at"]))
def test_an_altered_entry_breaks_the_next_one(place: int, field: str) -> None:
    entries = chain(5)
    other = {"reason": "another", "by": "eve", "weights": {"1": 100}, "at": datetime(2020, 1, 1, tzinfo=UTC)}[field]
    entries[place] = entries[place].model_copy(update={field: other})
    with pytest.raises(IntegrityError, match=f"entry {place + 2} does not follow entry {place + 1}"):
        ledger.verify(entries)


def test_swapped_entries_are_seen() -> None:
    one, two, *rest = chain(4)
    with pytest.raises(IntegrityError):
        ledger.verify([two, one, *rest])


def test_a_chain_of_another_beginning_is_seen() -> None:
    [entry] = chain(1)
    with pytest.raises(IntegrityError):
        ledger.verify([entry.model_copy(update={"before": "sha256:" + "0" * 64})])


def test_keys_sort_by_sequence_and_lie_below_the_models_prefix() -> None:
    keys = [ledger.key(entry) for entry in chain(12)]
    assert keys == sorted(keys)
    assert all(key.startswith(ledger.prefix("tea_orders")) for key in keys)


def test_an_entry_reads_back_with_the_digest_that_it_had() -> None:
    entry = chain(2)[1]
    assert Entry.model_validate_json(entry.model_dump_json()).digest == entry.digest
