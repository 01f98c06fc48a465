"""The one writer of routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from seatrial.errors import Conflict, StepError, Unavailable
from seatrial.ledger import Action, Book, Fact
from seatrial.names import kebab
from seatrial.ports import Clock, Routes
from seatrial.route.state import RouteState, from_manifest

PAUSES_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 1.6)
"""Seconds between tries after a conflict or a lost answer; about five in all."""

Decide = Callable[[RouteState], RouteState | None]
Say = Callable[..., None]


def _silent(_what: str, **_facts: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    pass


class Router:
    """Reads routes and changes them, one patch a change."""

    def __init__(
        self, routes: Routes, clock: Clock, *, namespace: str, book: Book | None = None, say: Say = _silent
    ) -> None:
        """A router.

        Args:
            routes: Where they are.
            clock: For the pauses between tries.
            namespace: Of the routes and services.
            book: The ledger; None: nothing is recorded. A change never waits for it to work: what could not be
                written is said, and written with the next change or by settle.
            say: Takes `route_changed` and `ledger_not_written` events with their facts.
        """
        self._routes = routes
        self._clock = clock
        self._namespace = namespace
        self._book = book
        self._say = say

    def read(self, model_name: str) -> RouteState:
        """What the model's route says now."""
        return from_manifest(model_name, self._routes.get(kebab(model_name)))

    def change(self, model_name: str, decide: Decide, *, action: Action, reason: str) -> RouteState:
        """Read, decide, write; on conflict read and decide again. The route as it is afterwards.

        A write whose answer got lost is recognised and not done twice. What `decide` raises goes through, and the
        route stays as it is.

        Args:
            model_name: The model.
            decide: The wanted state, or None for nothing to do; called again with a newer state after a conflict.
            action: What it is, for the ledger.
            reason: Why, for the ledger.

        Raises:
            Conflict: Others were faster each time.
            Unavailable: The API does not answer.
        """
        tried: tuple[RouteState, RouteState] | None = None
        failed: Unavailable | None = None
        for pause in (*PAUSES_S, None):
            try:
                before = self.read(model_name)
                if tried is not None and _landed(before, tried[1]):
                    return self._done(*tried)
                wanted = decide(before)
                if wanted is None:
                    self._record(before)
                    return before
                after = wanted.but(sequence=self._next(before), action=action, reason=reason)
                tried = (before, after)
                self._write(before, after)
            except Unavailable as error:
                failed = error
                if pause is not None:
                    self._clock.sleep(pause)
            else:
                return self._done(before, after)
        kind = Conflict if isinstance(failed, Conflict) else Unavailable
        raise kind(f"the route of {model_name} could not be changed in {len(PAUSES_S) + 1} tries: {failed}") from failed

    def _write(self, before: RouteState, after: RouteState) -> None:
        name = kebab(before.model_name)
        if not after.exists:
            self._routes.delete(name, resource_version=before.resource_version)
            return
        manifest = after.manifest(self._namespace)
        if not before.exists:
            self._routes.create(manifest)
            return
        patch = {
            "metadata": {"annotations": manifest["metadata"]["annotations"]},
            "spec": {"rules": manifest["spec"]["rules"]},
        }
        self._routes.replace(name, patch, resource_version=before.resource_version)

    def _next(self, before: RouteState) -> int:
        """A removed route has lost its number: the ledger still knows the last one."""
        if before.exists or self._book is None:
            return before.sequence + 1
        last = self._book.last(before.model_name)
        return 1 if last is None else last.sequence + 1

    def _done(self, before: RouteState, after: RouteState) -> RouteState:
        self._say(
            "route_changed",
            action=after.action,
            weights=after.weights,
            champion=after.champion,
            candidate=after.candidate,
            sequence=after.sequence,
            owner=after.owner,
        )
        self._record(before, after)
        return after

    def _record(self, *states: RouteState) -> None:
        """Write what is known of the last changes; a ledger that is away does not stop anybody."""
        if self._book is None:
            return
        facts = [_fact(state, state.action) for state in states if state.action is not None]
        try:
            self._book.append(states[-1].model_name, facts)
        except StepError as error:
            self._say("ledger_not_written", error=str(error), sequences=[fact.sequence for fact in facts])


def _fact(state: RouteState, action: Action) -> Fact:
    return Fact(
        sequence=state.sequence,
        action=action,
        weights=state.weights,
        champion=state.champion,
        by=state.owner or "unknown",
        reason=state.reason,
    )


def _landed(found: RouteState, tried: RouteState) -> bool:
    """Whether the route found is the one that was tried to write."""
    if not tried.exists:
        return not found.exists
    return found.but(resource_version="") == tried.but(resource_version="")
