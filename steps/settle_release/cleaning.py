"""Services that nobody needs any more."""

from __future__ import annotations

import json

from seatrial import release
from seatrial.errors import InvalidInput
from seatrial.ledger import Book
from seatrial.names import version_of
from seatrial.ports import Services, Store
from seatrial.route import RouteState
from steps.settle_release.logic import removable


def clean(
    state: RouteState, *, own: int | None, services: Services, store: Store, book: Book, alone: bool = False
) -> list[str]:
    """Delete the services of this model that nobody needs; their names.

    Where the route is gone and the ledger names a version that served last, only this release's own service goes: a
    route that was lost can be made again from the ledger, with its way back.

    Args:
        state: The route, after it was put right and read back.
        own: This release's version.
        services: Of all versions.
        store: Tells which releases have ended.
        book: The ledger.
        alone: The lock of this model's roll-outs is held by whoever asks: no version is just starting.

    Raises:
        Unavailable: The API or the store does not answer.
    """
    names = versions_of(services, state.model_name)
    if not names:
        return []
    lost = served_last(state, book)
    over = [version for version in names if is_over(store, state.model_name, version)]
    unneeded = removable(names, state, own=own, ended=over, alone=alone)
    gone = [names[version] for version in unneeded if lost is None or version == own != lost]
    for name in gone:
        services.delete(name)
    return gone


def versions_of(services: Services, model_name: str) -> dict[int, str]:
    """Version → name, of the services of a model; a name that is not of our making is left out."""
    found = {}
    for name in services.names(model_name):
        try:
            found[version_of(name)] = name
        except InvalidInput:
            continue
    return found


def served_last(state: RouteState, book: Book) -> int | None:
    """The version that a lost route served by the ledger's word; None: there is a route, or nobody served."""
    last = None if state.exists else book.last(state.model_name)
    return None if last is None else last.champion


def holder(store: Store, model_name: str, version: int) -> str | None:
    """The release that reserved a version; None: nobody is known to have."""
    raw = store.read(release.reservation_key(model_name, version))
    try:
        return str(json.loads(raw or b"")["release_id"])
    except (ValueError, KeyError, TypeError):
        return None


def is_over(store: Store, model_name: str, version: int) -> bool:
    """Whether the release that has this version has ended."""
    release_id = holder(store, model_name, version)
    return release_id is not None and store.read(release.outcome_key(model_name, release_id)) is not None
