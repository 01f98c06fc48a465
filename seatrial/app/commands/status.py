"""`seatrial status`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.app.commands._place import ROOT, checked_model, home, known_models
from seatrial.errors import StepError

if TYPE_CHECKING:
    from seatrial.app.commands._ports import Ports

ASKED = 10
"""Requests that show who answers."""
OUTCOMES_SHOWN = 5


def status(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Only this model.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
) -> int:
    """Show who serves, who is on trial, who really answers, what runs, and how the last releases ended.

    Who answers is counted on requests through the gateway, not read from a status. A candidate whose release is gone
    is taken out first.

    Example:
        seatrial status cart_abandonment

    Exit codes: 0 told, also when the sandbox is down; 78 no such model.
    """
    from seatrial.app import sandbox  # noqa: PLC0415
    from seatrial.app.commands import _console, _leftovers, _ports  # noqa: PLC0415
    from seatrial.app.views import status as view  # noqa: PLC0415

    console = _console.console(as_json=as_json)
    found = sandbox.find(home())
    ports = None if found is None else _ports.connect(found)
    known = sorted({*known_models(ROOT), *(ports.models if ports else ())})
    names = known if model is None else [checked_model(model, known)]
    facts: dict[str, Any] = {"sandbox": "down" if ports is None else "up", "models": []}
    if ports is not None:
        _leftovers.settle_leftovers(ports, names, _console.say_to(console))
        facts["models"] = [of_model(ports, name) for name in names]
    facts["parts"] = [part.model_dump() for part in sandbox.parts(home())]
    if as_json:
        _console.print_json(facts)
    else:
        console.print(view.page(facts))
    return 0


def of_model(ports: Ports, model: str) -> dict[str, Any]:
    """All that is known of one model; what cannot be found out now is said in `trouble`."""
    state = ports.router.read(model)
    trouble: list[str] = []

    def found(read: Any, otherwise: Any) -> Any:  # noqa: ANN401 - any fact
        try:
            return read()
        except StepError as error:
            trouble.append(str(error))
            return otherwise

    return {
        "model": model,
        "champion": state.champion,
        "previous": state.previous,
        "candidate": state.candidate,
        "weights": {str(version): percent for version, percent in sorted(state.weights.items())},
        "changed_by_hand": state.foreign,
        "owner": state.owner,
        "last_change": state.action,
        "reason": state.reason,
        "watched_until": state.watched_until,
        "answers": found(lambda: answers(ports, model, state.champion), {}),
        "services": found(lambda: services(ports, model), []),
        "outcomes": found(lambda: ports.outcomes(model)[-OUTCOMES_SHOWN:], []),
        "trouble": trouble,
    }


def answers(ports: Ports, model: str, champion: int | None) -> dict[str, int]:
    """Who answers how often, without the header: `v1`, or the status of an answer without a version."""
    request = b"{}" if champion is None else ports.golden_request(model, champion)
    seen: Counter[str] = Counter()
    for _ in range(ASKED if champion is not None else 1):
        answer = ports.predictions.ask(model, request)
        served = answer.status == 200 and answer.version is not None
        seen[f"v{answer.version}" if served else f"status {answer.status}"] += 1
    return dict(seen)


def services(ports: Ports, model: str) -> list[dict[str, Any]]:
    """Each version's service and whether it says that it is ready."""
    found = []
    for name in ports.services.names(model):
        conditions = ((ports.services.get(name) or {}).get("status") or {}).get("conditions", ())
        ready: dict[str, Any] = next((c for c in conditions if c.get("type") == "Ready"), {})
        why = " ".join(str(ready.get(key, "")) for key in ("reason", "message")).strip()
        found.append({"name": name, "ready": ready.get("status", "Unknown"), "why": why})
    return found
