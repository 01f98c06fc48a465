"""What an earlier crash left on this machine: a candidate, a service, a change that no ledger entry tells.

The lock of a model's roll-outs says whether one is alive: a dead owner holds none. With the lock in hand nothing of
this model can be just starting, and so whatever the route does not name is left over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from seatrial import digests, release, route
from seatrial.app.commands._ports import Local
from seatrial.app.runner.locks import Locks
from seatrial.errors import Frozen, InvalidInput
from seatrial.names import version_of
from seatrial.route import RouteState
from steps.settle_release.cleaning import clean, holder
from steps.settle_release.logic import is_release

WHY: Final = "the release was ended before its exit handler could run"

Say = Callable[[str], None]


def settle_leftovers(ports: Local, models: Iterable[str], say: Say) -> None:
    """Put right what the dead releases of these models left.

    A route that somebody changed by hand is named and left alone.
    """
    for model in models:
        try:
            settle(ports, model, say)
        except Frozen as error:
            say(str(error))


def settle(ports: Local, model: str, say: Say) -> bool:
    """Take out a candidate whose release is gone, delete what nobody needs, and record what was not recorded.

    Returns:
        False, and nothing done, while a roll-out of this model is alive: it settles what it leaves.

    Raises:
        Frozen: Somebody changed the route by hand.
        Unavailable: The API or the store is away.
    """
    locks = Locks(ports.locks, "settle")
    if not locks.acquire(f"{ports.namespace}/Mutex/roll-out-{model}"):
        return False
    try:
        before = ports.router.read(model)
        after = _put_right(ports, before)
        route.ours(after)
        deleted = clean(after, own=None, services=ports.services, store=ports.store, book=ports.book, alone=True)
        taken_out = before.candidate if after.candidate is None else None
        _tell(model, taken_out, deleted, say)
        for version in sorted({_version(name) for name in deleted} | {taken_out or 0} - {0}):
            _record_end(ports, after, version, tried=version == taken_out)
    finally:
        locks.release_all()
    return True


def _put_right(ports: Local, before: RouteState) -> RouteState:
    """The route without a candidate that nobody watches; the last change is recorded where the ledger lacks it."""
    if not before.exists or before.foreign:  # weights found by hand are no change of ours
        return before
    owner = before.owner if before.candidate is not None and is_release(before.owner) else None
    return ports.router.change(
        before.model_name,
        lambda state: route.settle(state, now=ports.clock.now(), owner=owner),
        action="settle",
        reason="the release that had it on trial is gone",
    )


def _tell(model: str, taken_out: int | None, deleted: list[str], say: Say) -> None:
    if taken_out is not None:
        say(f"v{taken_out} of {model} was on trial and nobody watched it: taken out {' '.join(deleted)}".rstrip())
        return
    for name in deleted:
        say(f"deleted {name}: nobody needs it")


def _record_end(ports: Local, state: RouteState, version: int, *, tried: bool) -> None:
    """The outcome of a release that could not write its own; a word of its own stands."""
    release_id = holder(ports.store, state.model_name, version)
    if release_id is None:
        return
    facts: dict[str, Any] = {
        "outcome": "rolled_back" if tried else "failed",
        "release_id": release_id,
        "model_name": state.model_name,
        "version": version,
        "at": ports.clock.now().isoformat(timespec="seconds"),
        "reasons": [WHY],
        "champion": state.champion,
        "previous": state.previous,
        "weights": {str(number): percent for number, percent in state.weights.items()},
    }
    ports.store.write_once(release.outcome_key(state.model_name, release_id), digests.canonical(facts))


def _version(name: str) -> int:
    try:
        return version_of(name)
    except InvalidInput:
        return 0
