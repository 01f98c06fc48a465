"""The sandbox that a command needs: found, or brought up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seatrial.app import sandbox
from seatrial.app.commands._place import home
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
