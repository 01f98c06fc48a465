"""What the store says of a version that serves: all of it, about that version, or an error."""

from __future__ import annotations

import fakes_release as made
import pytest
from fakes_store import MemoryStore

from seatrial import release
from seatrial.errors import IntegrityError
from seatrial.release import Served

MODEL = "tea_orders"
V2 = Served(version=2, bundle=made.ZERO, image=f"localhost/tea@{made.ZERO}", release_digest=made.ZERO)


def knowing(version: int, text: str) -> MemoryStore:
    store = MemoryStore()
    store.write(release.served_key(MODEL, version), text.encode())
    return store


def test_what_was_written_is_read() -> None:
    store = knowing(2, V2.model_dump_json())
    assert release.served(store, MODEL, 2) == release.serving(store, MODEL, 2) == V2


def test_a_version_that_the_store_does_not_know_may_not_serve() -> None:
    assert release.served(MemoryStore(), MODEL, 2) is None
    with pytest.raises(IntegrityError, match="v2 serves tea_orders"):
        release.serving(MemoryStore(), MODEL, 2)


@pytest.mark.parametrize(("text", "words"), [("{}", "must say what v3"), (V2.model_dump_json(), "it is about v2")])
def test_what_is_unreadable_or_about_another_version_is_not_believed(text: str, words: str) -> None:
    with pytest.raises(IntegrityError, match=words):
        release.served(knowing(3, text), MODEL, 3)
