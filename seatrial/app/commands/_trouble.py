"""What is wrong with a model, by what was found of it; each with what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from seatrial.app.commands._ports import Ports
from seatrial.ledger import Entry
from seatrial.route import RouteState


def of_route(ports: Ports, state: RouteState, last: Entry | None) -> Iterator[str]:
    """What route and ledger say against each other."""
    model = state.model_name
    if not state.exists and last is not None and last.champion is not None:
        yield (
            f"the route is gone, and nobody took it away by the ledger: v{last.champion} served last (entry "
            f"{last.sequence}, {last.action} by {last.by}, {last.at:%Y-%m-%d %H:%M} UTC); "
            f"`seatrial settle {model} --from-ledger{ports.options}` makes it again"
        )
    if state.exists and not state.foreign and last is not None and last.sequence > state.sequence:
        yield (
            f"the route says that {state.sequence} changes were made, the ledger knows {last.sequence}: "
            "an older route was put in the place of the newer one"
        )


def of_services(ports: Ports, state: RouteState, running: Collection[int]) -> Iterator[str]:
    """Who is to answer and has no service."""
    needed = {version for version, percent in state.weights.items() if percent > 0}
    for version in sorted(needed - set(running)):
        yield (
            f"v{version} gets {state.weights[version]} % of the traffic and has no service: those requests fail; "
            f"{_way_out(ports, state, version, running)}"
        )
    if state.previous is not None and state.previous not in running:
        yield f"v{state.previous} is where a rollback goes, and it has no service: a rollback would fail every request"


def _way_out(ports: Ports, state: RouteState, version: int, running: Collection[int]) -> str:
    model, back = state.model_name, state.champion if version != state.champion else state.previous
    again = f"{roll_out(ports, model, version)} rolls it out again"
    return f"`seatrial rollback {model}{ports.options}` goes to v{back}, {again}" if back in running else again


def roll_out(ports: Ports, model: str, version: int) -> str:
    """The command that rolls a version out again here."""
    return f"`seatrial {ports.releasing} {model}{ports.options} --version {version}`"
