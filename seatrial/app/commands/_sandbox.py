"""The sandbox that a command needs: found, or brought up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seatrial.app import sandbox
from seatrial.app.commands._place import ROOT, checked_model, home, known_models
from seatrial.app.commands._ports import Ports, connect
from seatrial.errors import InvalidInput

Say = Callable[[str], None]


def started(source: Path, say: Say) -> Ports:
    """The sandbox, brought up when it is down."""
    return connect(sandbox.up(home(), source=source, say=say))


def running() -> Ports:
    """The sandbox that is up.

    Raises:
        InvalidInput: It is down.
    """
    found = sandbox.find(home())
    if found is None:
        raise InvalidInput("the sandbox is down, so nobody serves: `seatrial up` starts it, with what it served before")
    return connect(found)


def serving(model: str) -> Ports:
    """The sandbox that is up, after checking that it knows the model.

    Raises:
        InvalidInput: There is no such model, or the sandbox is down.
    """
    found = sandbox.find(home())
    ports = connect(found) if found is not None else None
    checked_model(model, known_models(ROOT) if ports is None else sorted({*ports.models, *known_models(ROOT)}))
    return ports or running()
