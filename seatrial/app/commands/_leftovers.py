"""What an earlier crash left: a candidate that nobody watches any more, a change that no ledger entry tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from seatrial import route
from seatrial.app.commands._ports import Ports
from seatrial.app.runner.locks import Locks
from seatrial.errors import Frozen
from seatrial.route import RouteState
from steps.settle_release.cleaning import clean

_RELEASE_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A run's uid. Other owners are persons, whose watch lasts as long as they said."""


def settle_leftovers(ports: Ports, models: Iterable[str], say: Callable[[str], None]) -> None:
    """Take out every candidate whose release is gone, and record the last change where the ledger lacks it.

    A route that somebody changed by hand is named and left alone.
    """
    for model in models:
        try:
            _settle(ports, model, say)
        except Frozen as error:
            say(str(error))


def _settle(ports: Ports, model: str, say: Callable[[str], None]) -> None:
    before = ports.router.read(model)
    if before.candidate is None:
        _record(ports, before)
        return
    locks = Locks(ports.locks, "settle")
    if not locks.acquire(f"{ports.sandbox.namespace}/Mutex/roll-out-{model}"):
        return  # a roll-out of this model is alive
    try:
        owner = before.owner if _RELEASE_ID.fullmatch(before.owner) else None
        after = _without(ports, model, owner)
        if after.candidate is None:
            deleted = clean(after, own=before.candidate, services=ports.services, store=ports.store)
            say(f"v{before.candidate} of {model} was on trial and nobody watched it: taken out {' '.join(deleted)}")
    finally:
        locks.release_all()


def _record(ports: Ports, state: RouteState) -> None:
    """Write the entry of the route's last change, if it is missing. Weights found by hand are no change of ours."""
    if state.exists and not state.foreign:
        ports.router.change(state.model_name, lambda _: None, action="settle", reason="")


def _without(ports: Ports, model: str, owner: str | None) -> RouteState:
    return ports.router.change(
        model,
        lambda state: route.settle(state, now=ports.clock.now(), owner=owner),
        action="settle",
        reason="the release that had it on trial is gone",
    )
