"""The ledger: append-only, chained, without gaps, whoever writes."""

from __future__ import annotations

import pytest
from fakes_serving import FakeClock, MemoryStore
from hypothesis import given
from hypothesis import strategies as st

from seatrial import ledger
from seatrial.errors import IntegrityError
from seatrial.ledger import Book, Fact

MODEL = "cart_abandonment"


def fact(sequence: int) -> Fact:
    return Fact(
        sequence=sequence, action="shift", weights={1: 90, 2: 10}, champion=1, by="r2", reason=f"no. {sequence}"
    )


def book() -> Book:
    return Book(MemoryStore(), FakeClock())


def test_two_writers_at_once_lose_nothing() -> None:
    ours = book()
    ours.append(MODEL, [fact(1)])
    ours.append(MODEL, [fact(2), fact(3)])  # the faster of two; it knows what the slower one did
    ours.append(MODEL, [fact(1), fact(2)])
    entries = ours.entries(MODEL)
    ledger.verify(entries)
    assert [entry.reason for entry in entries] == ["no. 1", "no. 2", "no. 3"]


def test_writing_an_entry_again_leaves_the_first() -> None:
    ours = book()
    ours.append(MODEL, [fact(1)])
    before = ours.entries(MODEL)
    ours.append(MODEL, [Fact(sequence=1, action="go_back", weights={}, champion=None, by="x", reason="other")])
    assert ours.entries(MODEL) == before


@given(st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=3), max_size=10))
def test_the_chain_is_whole_in_whatever_order_facts_come(writes: list[list[int]]) -> None:
    ours = book()
    for numbers in writes:
        ours.append(MODEL, [fact(number) for number in numbers])
    ledger.verify(ours.entries(MODEL))


def test_a_route_far_ahead_of_its_ledger_is_not_filled_up() -> None:
    with pytest.raises(IntegrityError, match="unrecorded"):
        book().append(MODEL, [fact(ledger.GAP_MAX + 1)])


def test_an_altered_entry_breaks_the_chain() -> None:
    store = MemoryStore()
    ours = Book(store, FakeClock())
    ours.append(MODEL, [fact(1)])
    ours.append(MODEL, [fact(2)])
    key = "models/cart_abandonment/ledger/00000001.json"
    store.objects[key] = store.objects[key].replace(b"r2", b"r3")
    with pytest.raises(IntegrityError, match="altered"):
        ledger.verify(ours.entries(MODEL))
