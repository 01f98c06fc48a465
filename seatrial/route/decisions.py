"""Who serves next. A state in; the wanted state out, or None when there is nothing to do.

Every decision is idempotent: on its own result it says None. None but a person's `rollback` and `adopt` touches a route
that somebody changed by hand; none but a person's `restore` makes a route that was lost.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from seatrial.errors import Frozen, InvalidInput, Superseded
from seatrial.route.state import RouteState, nothing, written


def begin(
    state: RouteState, *, version: int, owner: str, now: datetime, watched_until: datetime, against: int | None
) -> RouteState | None:
    """Put `version` on trial at weight 0: only the header reaches it.

    A candidate of another release gives way, unless it is a newer one that somebody watches: with the lock held its
    release is over. Trial and weights of this release's own candidate stay as they are.

    Args:
        state: The route.
        version: The candidate; nothing to do when it serves already.
        owner: The release.
        now: The moment.
        watched_until: Until when the release promises to watch.
        against: The champion that the candidate was judged against; None: there was none.

    Raises:
        Superseded: Another champion serves, or a newer version is being tried.
        Frozen: Somebody changed the route by hand.
    """
    ours(state)
    if state.champion == version:
        return None
    if state.champion != against or (state.champion is not None and state.champion > version):
        raise Superseded(f"{_who(against)} was judged against, {_who(state.champion)} serves now")
    if state.candidate == version and state.owner == owner:
        return _changed(state, state.but(watched_until=watched_until))
    if state.candidate is not None and state.candidate > version and _watched(state, now):
        raise Superseded(f"v{state.candidate} is on trial by {state.owner}: newer than v{version}")
    return state.but(
        exists=True,
        candidate=version,
        weights={} if state.champion is None else {state.champion: 100, version: 0},
        owner=owner,
        watched_until=watched_until,
    )


def shift(state: RouteState, *, version: int, weight: int, owner: str, watched_until: datetime) -> RouteState | None:
    """Give the candidate `weight` percent, 0 to 100, and the champion the rest.

    Raises:
        Superseded: Somebody else owns the route, or took the candidate out.
        Frozen: Somebody changed the route by hand.
        InvalidInput: There is no champion to share with: a first release is promoted or goes back.
    """
    _mine(state, version, owner)
    if state.champion is None:
        raise InvalidInput(f"a first release has no stable arm to share with: promote v{version} or go back")
    if not 0 <= weight <= 100:
        raise InvalidInput(f"a weight is 0 to 100 percent; got {weight}")
    weights = {state.champion: 100 - weight, version: weight}
    return _changed(state, state.but(weights=weights, watched_until=watched_until))


def promote(state: RouteState, *, version: int, owner: str) -> RouteState | None:
    """Make the candidate champion, with all traffic; the champion becomes previous.

    Raises:
        Superseded: Somebody else owns the route, or took the candidate out.
        Frozen: Somebody changed the route by hand.
    """
    ours(state)
    if state.champion == version:
        return None
    _mine(state, version, owner)
    return state.but(
        champion=version, previous=state.champion, candidate=None, weights={version: 100}, watched_until=None
    )


def go_back(state: RouteState, *, owner: str, version: int | None = None) -> RouteState | None:
    """Take the candidate out: all traffic to the champion; without one, no route. Anyone may do it.

    Args:
        state: The route.
        owner: Who does it, and owns the route from then on.
        version: Only this candidate; None: whichever is on trial.

    Raises:
        Frozen: Somebody changed the route by hand.
    """
    ours(state)
    if state.candidate is None or version not in {None, state.candidate}:
        return None
    return _without_candidate(state, owner)


def rollback(state: RouteState, *, owner: str, away_from: int | None = None) -> RouteState | None:
    """A person's way back, one step: a candidate is taken out; else the previous version serves again.

    It also puts right what somebody changed by hand. Afterwards there is no previous version: one step back, not to
    and fro.

    Args:
        state: The route.
        owner: The person.
        away_from: The version that the person saw and wants gone; nothing to do when it is gone already. None: the
            candidate, or the champion when nobody is on trial.

    Raises:
        InvalidInput: There is nothing to go back to; the route stays as it is.
    """
    leaving = away_from if away_from is not None else state.candidate or state.champion
    if leaving is not None and leaving == state.candidate:
        return _without_candidate(state, owner)
    if leaving == state.champion and state.previous is not None:
        return _serving(state, state.previous, owner, previous=None)
    if state.foreign and state.champion is not None:
        return _serving(state, state.champion, owner, previous=state.previous)
    if leaving != state.champion:
        return None
    if state.champion is None:
        raise InvalidInput(f"{state.model_name} has nothing to go back to: nobody serves; release a version")
    raise InvalidInput(
        f"{state.model_name} has nothing to go back to: v{state.champion} serves and no previous version is kept; "
        "release a good version, or take it out of service by deleting its HTTPRoute"
    )


def settle(state: RouteState, *, now: datetime, owner: str | None = None) -> RouteState | None:
    """Take out a candidate that nobody answers for.

    Args:
        state: The route.
        now: The moment.
        owner: The release that has ended: its candidate goes, watched or not, and nobody else's. None: any candidate
            whose watch is over.

    Raises:
        Frozen: Somebody changed the route by hand while such a candidate is on trial.
    """
    if state.candidate is None or (state.owner != owner if owner is not None else _watched(state, now)):
        return None
    ours(state)
    return _without_candidate(state, owner or "settle")


def adopt(state: RouteState, *, owner: str, watched_until: datetime, running: Collection[int]) -> RouteState | None:
    """A person says that the weights found are meant.

    A version with all of the traffic becomes champion. Shares of the champion and one other version stay as they are,
    with the person as owner; `settle` takes the other one out when the person's watch is over.

    Args:
        state: The route.
        owner: The person.
        watched_until: Until when the person answers for shared weights.
        running: The versions that have a service.

    Raises:
        InvalidInput: The route names no version, or one without a service, or shares among others than the champion
            and one more.
    """
    if not state.foreign:
        return None
    total = sum(state.weights.values())
    serving = [version for version, weight in state.weights.items() if weight > 0]
    if gone := sorted(set(serving) - set(running)):
        raise _not_adopted(state, f"{' and '.join(map(_who, gone))} has no service, so those requests fail")
    if len(serving) == 1:
        before = state.previous if serving[0] == state.champion else state.champion
        return _serving(state, serving[0], owner, previous=before if before in running else None)
    champion = state.champion
    if champion is None or champion not in serving or len(serving) != 2:
        raise _not_adopted(state, "give all of it to one version or share between the champion and one other")
    other = next(version for version in serving if version != champion)
    share = round(100 * state.weights[other] / total)
    return state.but(
        foreign=False,
        candidate=other,
        weights={champion: 100 - share, other: share},
        owner=owner,
        watched_until=watched_until,
    )


def restore(state: RouteState, *, champion: int, previous: int | None, owner: str) -> RouteState:
    """A person says that the route was lost, and that the version which the ledger names is to serve again.

    Raises:
        InvalidInput: A route is there: it is the truth, whatever the ledger says.
    """
    if state.exists:
        raise InvalidInput(
            f"{state.model_name} has a route ({written(state.weights) or 'no traffic'}), and a route that is there is "
            "the truth: only one that was lost is made from the ledger"
        )
    return _serving(
        state.but(exists=True, champion=champion, weights={champion: 100}), champion, owner, previous=previous
    )


def ours(state: RouteState) -> None:
    """See that the route is as one of ours wrote it.

    Raises:
        Frozen: Somebody changed it by hand.
    """
    if state.foreign:
        raise Frozen(
            f"somebody changed the route of {state.model_name} by hand (traffic now: "
            f"{written(state.weights) or 'nobody'}): automation leaves it alone; say `seatrial adopt "
            f"{state.model_name}` if it is meant, or `seatrial rollback {state.model_name}`"
        )


def _without_candidate(state: RouteState, owner: str) -> RouteState:
    if state.champion is None:
        return nothing(state.model_name).but(owner=owner, sequence=state.sequence)
    return state.but(foreign=False, candidate=None, weights={state.champion: 100}, owner=owner, watched_until=None)


def _serving(state: RouteState, version: int, owner: str, *, previous: int | None) -> RouteState:
    return state.but(
        foreign=False,
        champion=version,
        previous=previous,
        candidate=None,
        weights={version: 100},
        owner=owner,
        watched_until=None,
    )


def _not_adopted(state: RouteState, why: str) -> InvalidInput:
    return InvalidInput(
        f"the route of {state.model_name} gives {written(state.weights) or 'nobody'} traffic: that cannot be adopted; "
        f"{why}, or say `seatrial rollback {state.model_name}`"
    )


def _mine(state: RouteState, version: int, owner: str) -> None:
    ours(state)
    if state.owner != owner or state.candidate != version:
        raise Superseded(
            f"v{version} of {owner} is not on trial any more: {_who(state.champion)} serves, "
            f"{_who(state.candidate)} is on trial, {state.owner or 'nobody'} wrote last"
        )


def _watched(state: RouteState, now: datetime) -> bool:
    return state.watched_until is not None and now < state.watched_until


def _changed(before: RouteState, after: RouteState) -> RouteState | None:
    return None if after == before else after


def _who(version: int | None) -> str:
    return "nobody" if version is None else f"v{version}"
