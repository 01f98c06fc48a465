"""The sandbox of this machine: found, or brought up."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from seatrial.app import sandbox
from seatrial.app.commands import _leftovers
from seatrial.app.commands._place import ROOT, Place, Say, checked_model, home, known_models
from seatrial.app.commands._ports import Local, connect
from seatrial.errors import InvalidInput


class Laptop(Place):
    """This machine."""

    name = "the sandbox"

    @property
    def models(self) -> list[str]:
        """Those of the project, and those of the source that the sandbox was brought up with."""
        return sorted({*known_models(ROOT), *(known_models(self.ports.source) if self.ports else ())})

    @cached_property
    def ports(self) -> Local | None:
        """The sandbox that is up, found once; None: it is down."""
        found = sandbox.find(home())
        return None if found is None else connect(found)

    def reached(self) -> Local:
        """The sandbox that is up.

        Raises:
            InvalidInput: It is down.
        """
        if self.ports is None:
            raise InvalidInput(
                "the sandbox is down, so nobody serves: `seatrial up` starts it, with what it served before"
            )
        return self.ports

    def tidy(self, models: list[str], say: Say) -> None:
        """Nobody else is here: every command that looks puts right first what an earlier crash left."""
        _leftovers.settle_leftovers(self.reached(), models, say)

    def settle(self, model: str, say: Say) -> None:
        """Put right what a crash left.

        Raises:
            Frozen: Somebody changed the route by hand.
        """
        if not _leftovers.settle(self.reached(), model, say):
            say(f"a roll-out of {model} is alive: it settles what it leaves")

    def facts(self) -> dict[str, Any]:
        """Up or down, and every process."""
        parts = [part.model_dump() for part in sandbox.parts(home())]
        return {"sandbox": "down" if self.ports is None else "up", "parts": parts}


def started(source: Path, say: Say) -> Local:
    """The sandbox, brought up when it is down."""
    return connect(sandbox.up(home(), source=source, say=say))


def serving(model: str) -> Local:
    """The sandbox that is up, after checking that it knows the model.

    Raises:
        InvalidInput: There is no such model, or the sandbox is down.
    """
    here = Laptop()
    checked_model(model, here.models)
    return here.reached()
