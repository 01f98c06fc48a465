"""The one switch that makes the control API misbehave on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from seatrial.app.sandbox.control.kinds import Refused, bad_request

VERBS: Final = frozenset({"get", "list", "create", "patch", "delete", "*"})

_REFUSALS: Final[Mapping[str, tuple[int, str, str]]] = {
    "409": (409, "Conflict", "Operation cannot be fulfilled: the object has been modified; please apply your changes"),
    "429": (429, "TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    "500": (500, "InternalError", "Internal error occurred: injected"),
}


@dataclass
class Fault:
    """What to do to the next `count` requests with a verb."""

    kind: str
    count: int
    verb: str


class Faults:
    """Faults that wait for their requests; nothing waits at the start."""

    def __init__(self) -> None:
        self.waiting: list[Fault] = []

    def add(self, wish: Mapping[str, Any]) -> None:
        """Line up a fault: `{"kind": "409" | "429" | "500" | "hang", "count": 1, "verb": "patch"}`. Raises Refused."""
        kind, count, verb = str(wish.get("kind")), wish.get("count", 1), str(wish.get("verb", "*"))
        if kind not in {*_REFUSALS, "hang"} or verb not in VERBS or not isinstance(count, int) or count < 1:
            raise bad_request(
                f"a fault is kind 409, 429, 500 or hang, count ≥ 1, verb of {sorted(VERBS)}; got {dict(wish)}"
            )
        self.waiting.append(Fault(kind, count, verb))

    def take(self, verb: str) -> str | None:
        """The fault for a request with this verb, used up by one; None when none waits."""
        for fault in self.waiting:
            if fault.verb in {verb, "*"}:
                fault.count -= 1
                self.waiting = [waiting for waiting in self.waiting if waiting.count > 0]
                return fault.kind
        return None

    @staticmethod
    def refusal(kind: str) -> Refused:
        """What a fault other than `hang` answers."""
        return Refused(*_REFUSALS[kind])
