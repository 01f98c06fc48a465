"""Services that nobody needs any more."""

from __future__ import annotations

import json

from seatrial import release
from seatrial.errors import InvalidInput
from seatrial.names import version_of
from seatrial.ports import Services, Store
from seatrial.route import RouteState
from steps.settle_release.logic import removable


def clean(state: RouteState, *, own: int | None, services: Services, store: Store, alone: bool = False) -> list[str]:
    """Delete the services of this model that nobody needs; their names.

    Args:
        state: The route, after it was put right and read back.
        own: This release's version.
        services: Of all versions.
        store: Tells which releases have ended.
        alone: The lock of this model's roll-outs is held by whoever asks: no version is just starting.

    Raises:
        Unavailable: The API or the store does not answer.
    """
    names = {version: name for name in services.names(state.model_name) if (version := _version(name)) is not None}
    over = [version for version in names if _over(store, state.model_name, version)]
    gone = [names[version] for version in removable(names, state, own=own, ended=over, alone=alone)]
    for name in gone:
        services.delete(name)
    return gone


def _version(name: str) -> int | None:
    try:
        return version_of(name)
    except InvalidInput:
        return None


def _over(store: Store, model_name: str, version: int) -> bool:
    """Whether the release that has this version has ended."""
    raw = store.read(release.reservation_key(model_name, version))
    try:
        release_id = str(json.loads(raw or b"")["release_id"])
    except (ValueError, KeyError, TypeError):
        return False
    return store.read(release.outcome_key(model_name, release_id)) is not None
