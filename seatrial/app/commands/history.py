"""`seatrial history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.app.commands._place import NAMESPACE, Context, Namespace, serving
from seatrial.errors import IntegrityError, StepError

if TYPE_CHECKING:
    from seatrial.app.commands._ports import Ports


def history(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model's name, like cart_abandonment.")],
    last: Annotated[int, typer.Option("-n", min=1, help="Show so many of the latest changes.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
    context: Context = None,
    namespace: Namespace = NAMESPACE,
) -> int:
    """Show what served when, and why: the ledger, after checking its chain from the first entry on.

    Each entry holds the digest of the one before, so that an entry which was altered or taken out shows. What the
    route is ahead of the ledger is said; `settle` writes it.

    Example:
        seatrial history cart_abandonment

    Exit codes: 0 the chain is whole, 76 it is broken, 78 no such model, 75 the store is away.
    """
    from seatrial.app.commands import _console  # noqa: PLC0415
    from seatrial.app.views import history as view  # noqa: PLC0415

    _, ports = serving(model, context, namespace)
    facts = of_model(ports, model)
    if as_json:
        _console.print_json({**facts, "entries": facts["entries"][-last:]})
    else:
        _console.console().print(view.page(facts, last=last))
    return 0 if facts["whole"] else IntegrityError.exit_code


def of_model(ports: Ports, model: str) -> dict[str, Any]:
    """Every entry that can be read, whether the chain is whole, and what is wrong."""
    from seatrial import ledger  # noqa: PLC0415

    trouble, entries, whole = [], [], True
    try:
        entries = ports.book.entries(model)
        ledger.verify(entries)
    except IntegrityError as error:
        trouble.append(f"the ledger cannot be trusted: {error}")
        whole = False
    try:
        state = ports.router.read(model)
        behind = state.sequence - (entries[-1].sequence if entries else 0)
        if behind > 0 and not state.foreign:
            trouble.append(
                f"the route is {behind} changes ahead of the ledger: `seatrial settle {model}{ports.options}` "
                "records its last one"
            )
    except StepError as error:
        trouble.append(str(error))
    return {
        "model": model,
        "whole": whole,
        "entries": [entry.model_dump(mode="json") for entry in entries],
        "trouble": trouble,
    }
