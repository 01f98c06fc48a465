"""A route that was lost, made again from the ledger: only on a person's word, and only where no route is."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial import ledger, route
from seatrial.app.commands._ports import Ports, person
from seatrial.app.commands._trouble import roll_out
from seatrial.errors import InvalidInput
from seatrial.ledger import Entry
from seatrial.route import RouteState
from steps.settle_release.cleaning import versions_of

REASON = "the route was lost; made again from ledger entry {}"


def restored(ports: Ports, model: str) -> RouteState:
    """The route that says again what the ledger's last entry says of who serves.

    Raises:
        InvalidInput: A route is there, nobody served last, or the one who did has no service any more.
        IntegrityError: The ledger's chain is broken: it is no ground to decide on.
    """
    state = ports.router.read(model)
    if state.exists:
        route.restore(state, champion=0, previous=None, owner="")  # says why not
    entries = ports.book.entries(model)
    ledger.verify(entries)
    champion, previous = served(entries)
    if champion is None:
        raise InvalidInput(f"the ledger of {model} says that nobody served last: there is no route to make again")
    running = versions_of(ports.services, model)
    if champion not in running:
        raise InvalidInput(
            f"v{champion} of {model} served last, and its service is gone as well: a route to it would fail every "
            f"request; {roll_out(ports, model, champion)} rolls it out again"
        )
    return ports.router.change(
        model,
        lambda found: route.restore(
            found, champion=champion, previous=previous if previous in running else None, owner=person()
        ),
        action="settle",
        reason=REASON.format(entries[-1].sequence),
    )


def served(entries: Sequence[Entry]) -> tuple[int | None, int | None]:
    """Who served last, and who a rollback goes to: the champion before, unless a rollback put this one there.

    Args:
        entries: Of one model, by sequence.
    """
    known = [entry for entry in entries if entry.action != "unrecorded"]  # what nobody recorded names no champion
    champion = known[-1].champion if known else None
    since = len(known)
    while since and known[since - 1].champion == champion:
        since -= 1
    if champion is None or since == 0 or known[since].action == "rollback":
        return champion, None
    return champion, known[since - 1].champion
