"""`seatrial status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.app.commands._place import NAMESPACE, Context, Namespace, checked_model
from seatrial.errors import StepError, Unavailable

if TYPE_CHECKING:
    from seatrial.app.commands._ports import Ports
    from seatrial.route import RouteState

ASKED = 10
"""Requests that show who answers."""
OUTCOMES_SHOWN = 5


def status(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Only this model.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
    context: Context = None,
    namespace: Namespace = NAMESPACE,
) -> int:
    """Show who serves, who is on trial, who really answers, what runs, and how the last releases ended.

    Who answers is counted on requests through the gateway, not read from a status. In the sandbox a candidate whose
    release is gone is taken out first. What cannot be found out is said, and the rest is shown.

    Example:
        seatrial status cart_abandonment

    Exit codes: 0 told, also when the sandbox is down; 78 no such model; 75 the API is away, so that nobody knows who
    is to serve.
    """
    from seatrial.app.commands import _console, _place  # noqa: PLC0415
    from seatrial.app.views import status as view  # noqa: PLC0415

    console = _console.console(as_json=as_json)
    place = _place.place(context, namespace)
    names = place.models if model is None else [checked_model(model, place.models)]
    facts: dict[str, Any] = {"place": place.name, "models": []}
    ports = place.ports
    if ports is not None:
        for name in names:
            looked = Looked()
            looked.at(lambda name=name: place.tidy([name], _console.say_to(console)), None)  # type: ignore[misc]
            facts["models"].append(of_model(ports, name, looked))
    facts |= place.facts()
    if as_json:
        _console.print_json(facts)
    else:
        console.print(view.page(facts))
    known = all(model["route_known"] for model in facts["models"])
    return 0 if known else Unavailable.exit_code


class Looked:
    """What could not be found out, once each."""

    def __init__(self) -> None:
        self.trouble: list[str] = []

    def at(self, read: Callable[[], Any], otherwise: Any) -> Any:  # noqa: ANN401 - any fact
        """What `read` gives; `otherwise` when it cannot, and then why is kept."""
        try:
            return read()
        except StepError as error:
            self.say(str(error))
            return otherwise

    def say(self, text: str) -> None:
        """Keep it, unless it was said before."""
        if text not in self.trouble:
            self.trouble.append(text)


def of_model(ports: Ports, model: str, looked: Looked) -> dict[str, Any]:
    """All that is known of one model; what cannot be found out now is said in `trouble`."""
    from seatrial.app.commands import _trouble  # noqa: PLC0415

    state: RouteState | None = looked.at(lambda: ports.router.read(model), None)
    last = looked.at(lambda: ports.book.last(model), None)
    running = looked.at(lambda: services(ports, model), []) if state is not None else []
    if state is not None:
        versions = [one["version"] for one in running]
        for text in (*_trouble.of_route(ports, state, last), *_trouble.of_services(ports, state, versions)):
            looked.say(text)
    champion = state.champion if state is not None else last.champion if last is not None else None
    return {
        "model": model,
        "route_known": state is not None,
        **(_route(state) if state is not None else {}),
        "ledger": None if last is None else last.model_dump(mode="json"),
        "answers": looked.at(lambda: answers(ports, model, champion), {}),
        "services": running,
        "outcomes": looked.at(lambda: ports.releases(model)[-OUTCOMES_SHOWN:], []),
        "trouble": looked.trouble,
    }


def _route(state: RouteState) -> dict[str, Any]:
    return {
        "champion": state.champion,
        "previous": state.previous,
        "candidate": state.candidate,
        "weights": {str(version): percent for version, percent in sorted(state.weights.items())},
        "changed_by_hand": state.foreign,
        "owner": state.owner,
        "last_change": state.action,
        "reason": state.reason,
        "watched_until": state.watched_until,
    }


def answers(ports: Ports, model: str, champion: int | None) -> dict[str, int]:
    """Who answers how often, without the header: `v1`, or the status of an answer without a version.

    Raises:
        Unavailable: The gateway gives no answer at all.
    """
    request = b"{}" if champion is None else ports.golden_request(model, champion)
    seen: Counter[str] = Counter()
    for _ in range(ASKED if champion is not None else 1):
        answer = ports.predictions.ask(model, request)
        if answer.status == 0:
            raise Unavailable(f"the gateway does not answer for {model}: {answer.error}")
        served = answer.status == 200 and answer.version is not None
        seen[f"v{answer.version}" if served else f"status {answer.status}"] += 1
    return dict(seen)


def services(ports: Ports, model: str) -> list[dict[str, Any]]:
    """Each version's service and whether it says that it is ready."""
    from steps.settle_release.cleaning import versions_of  # noqa: PLC0415

    found = []
    for version, name in sorted(versions_of(ports.services, model).items()):
        conditions = ((ports.services.get(name) or {}).get("status") or {}).get("conditions", ())
        ready: dict[str, Any] = next((c for c in conditions if c.get("type") == "Ready"), {})
        why = " ".join(str(ready.get(key, "")) for key in ("reason", "message")).strip()
        found.append({"version": version, "name": name, "ready": ready.get("status", "Unknown"), "why": why})
    return found
