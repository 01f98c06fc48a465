"""Every change of who serves.

    state       what an HTTPRoute says, read and written
    decisions   begin, shift, promote, go_back, rollback, settle, adopt, restore: a state in; the wanted state, or None
    router      the one writer: read, decide, one patch with resourceVersion; on conflict read and decide again
    answers     the read-back: counted answers show who answers

The HTTPRoute is the truth. Going back needs the route and nothing else: no metrics, no store, no candidate.

    router = Router(routes, clock, namespace=…, book=Book(store, clock))
    router.change(model, lambda state: go_back(state, owner=release_id), action="go_back", reason="…")
"""

from __future__ import annotations

from seatrial.route.answers import read_back
from seatrial.route.decisions import adopt, begin, go_back, ours, promote, restore, rollback, settle, shift
from seatrial.route.router import Router
from seatrial.route.state import RouteState

__all__ = [
    "RouteState",
    "Router",
    "adopt",
    "begin",
    "go_back",
    "ours",
    "promote",
    "read_back",
    "restore",
    "rollback",
    "settle",
    "shift",
]
