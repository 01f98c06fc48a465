"""`seatrial drill`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer


def drill(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that serves, like cart_abandonment.")],
    fault: Annotated[
        Literal["errors", "never_ready"],
        typer.Option(help="errors: fails on traffic. never_ready: does not start."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
) -> int:
    """Release a candidate that misbehaves, under load, and see that it is taken back.

    The candidate is the champion with a fault that no gate before traffic can see. The load comes from a process of its
    own that knows every right answer; its log is what counts.

    Example:
        seatrial drill cart_abandonment --fault errors

    Exit codes: 0 the candidate was rolled back, the champion answers everything, and nothing was lost outside the
    candidate's share; 1 otherwise; 78 nobody serves the model, or somebody changed its route by hand.
    """
    from seatrial import route  # noqa: PLC0415
    from seatrial.app.commands import _console, _drilling, _leftovers, _running, _sandbox  # noqa: PLC0415
    from seatrial.app.views import drill as view  # noqa: PLC0415
    from seatrial.app.views import outcome  # noqa: PLC0415

    ports = _sandbox.serving(model)
    route.ours(ports.router.read(model))
    template = _running.release_template(model)
    console = _console.console(as_json=as_json)
    _leftovers.settle_leftovers(ports, [model], _console.say_to(console))
    drilled = _drilling.drilled(ports, model, fault, template, console)
    if as_json:
        _console.print_json(drilled.facts())
    else:
        console.print(view.table(drilled))
        for what in drilled.faults:
            console.print(f"✘ {what}", markup=False, style="red")
        console.print(outcome.line(drilled.ended), markup=False)
    return 1 if drilled.faults else 0
