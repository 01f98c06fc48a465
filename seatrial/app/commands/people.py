"""`seatrial rollback`, `settle` and `adopt`: what a person says about who serves."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.app.commands._place import NAMESPACE, Context, Namespace, serving
from seatrial.errors import StepError

if TYPE_CHECKING:
    from seatrial.app.commands._ports import Ports
    from seatrial.route import RouteState

ADOPTED_FOR = timedelta(hours=24)
"""How long a person who adopts shared weights answers for them."""

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model's name, like cart_abandonment.")]


def rollback(
    model: Model,
    reason: Annotated[str, typer.Option(help="Why, in a sentence; it goes into the ledger.")] = "a person went back",
    context: Context = None,
    namespace: Namespace = NAMESPACE,
) -> int:
    """Go back: a candidate is taken out; without one, the previous version serves again.

    It needs nothing but the route, and puts right what somebody changed by hand. It ends with a read-back: answers
    through the gateway, counted.

    Example:
        seatrial rollback cart_abandonment --reason "complaints"

    Exit codes: 0 done, 78 nothing to go back to (the route stays as it is), 75 the gateway or the API is away.
    """
    from seatrial import route  # noqa: PLC0415
    from seatrial.app.commands import _console, _ports  # noqa: PLC0415

    _, ports = serving(model, context, namespace)
    seen = ports.router.read(model)
    leaving = seen.candidate or seen.champion
    after = ports.router.change(
        model,
        lambda state: route.rollback(state, owner=_ports.person(), away_from=leaving),
        action="rollback",
        reason=reason,
    )
    _console.console().print(f"rolled_back {model}: {who_answers(ports, after)}", markup=False)
    return 0


def settle(
    model: Model,
    from_ledger: Annotated[bool, typer.Option("--from-ledger", help="The route was lost: make it again.")] = False,  # noqa: FBT002
    context: Context = None,
    namespace: Namespace = NAMESPACE,
) -> int:
    """Put right what an earlier crash left: a candidate that nobody watches, services that nobody needs.

    With --from-ledger a route that was lost is made again: the version that served last serves, if its service is
    there still. A route that is there is never touched by that.

    Example:
        seatrial settle cart_abandonment

    Exit codes: 0 done, 78 somebody changed the route by hand, or there is nothing to make from the ledger; 75 the API
    is away; 76 the ledger was altered.
    """
    from seatrial import route  # noqa: PLC0415
    from seatrial.app.commands import _console, _restoring  # noqa: PLC0415

    place, ports = serving(model, context, namespace)
    console = _console.console()
    if from_ledger:
        restored = _restoring.restored(ports, model)
        console.print(f"restored {model}: {who_answers(ports, restored)}", markup=False)
        return 0
    place.settle(model, _console.say_to(console))
    state = ports.router.read(model)
    route.ours(state)
    console.print(f"settled {model}: {_serves(state)}", markup=False)
    return 0


def adopt(
    model: Model,
    reason: Annotated[str, typer.Option(help="Why the weights found are meant; it goes into the ledger.")],
    context: Context = None,
    namespace: Namespace = NAMESPACE,
) -> int:
    """Say that weights which somebody wrote by hand are meant, so that automation goes on from there.

    A version with all of the traffic becomes champion. Weights shared by two stay for 24 hours; then `settle` gives
    the champion everything. A version without a service is never adopted.

    Example:
        seatrial adopt cart_abandonment --reason "moved by hand during the incident"

    Exit codes: 0 done, or nothing to adopt; 78 weights that cannot be adopted.
    """
    from seatrial import route  # noqa: PLC0415
    from seatrial.app.commands import _console, _ports  # noqa: PLC0415
    from steps.settle_release.cleaning import versions_of  # noqa: PLC0415

    _, ports = serving(model, context, namespace)
    before = ports.router.read(model)
    running = versions_of(ports.services, model)
    until = ports.clock.now() + ADOPTED_FOR
    after = ports.router.change(
        model,
        lambda state: route.adopt(state, owner=_ports.person(), watched_until=until, running=running),
        action="adopt",
        reason=reason,
    )
    verb = "adopted" if before.foreign else "nothing to adopt in"
    _console.console().print(f"{verb} {model}: {_serves(after)}", markup=False)
    return 0


def who_answers(ports: Ports, state: RouteState) -> str:
    """The read-back in words. The route is changed already, so what cannot be read back is said and is no error."""
    from seatrial import route  # noqa: PLC0415

    expected = [version for version, percent in state.weights.items() if percent > 0]
    who = " or ".join(f"v{version}" for version in sorted(expected))
    try:
        request = b"{}" if state.champion is None else ports.golden_request(state.model_name, state.champion)
    except StepError as error:
        return f"the route says {who or 'nobody'}; who answers cannot be counted: {error}"
    seen = route.read_back(ports.predictions, ports.clock, state.model_name, request, expected=expected)
    right = sum(count for name, count in seen.items() if name in {f"v{version}" for version in expected} | {"404"})
    return f"{who or 'nobody'} answers ({right} of {sum(seen.values())})"


def _serves(state: RouteState) -> str:
    if not state.exists:
        return "nobody serves"
    return (
        ", ".join(f"v{version} {percent} %" for version, percent in sorted(state.weights.items())) or "no traffic yet"
    )
