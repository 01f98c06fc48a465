"""Parts on their way up: started in order, waited for, timed; one that does not come is named with its log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from infra.cluster.build import Say
from infra.cluster.cluster import Cluster
from infra.cluster.parts.part import Part
from infra.cluster.toolchain import tail
from seatrial.app.sandbox.supervisor import program_section
from seatrial.errors import Unavailable

_FALLS_MAX: Final = 3
"""So often may a part end while it comes up."""
_POLL_S: Final = 0.1
_STOPPED_WITHIN_S: Final = 15.0
_UP: Final = frozenset({"RUNNING", "STARTING"})


class Clock:
    """Says how long each thing took since the one before."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._begun = self._last = time.monotonic()

    def lap(self, what: str) -> None:
        """`what` is done."""
        now = time.monotonic()
        self._say(f"{what:<28}{now - self._last:6.1f} s")
        self._last = now

    def total(self, what: str) -> None:
        """All of it is done."""
        self._say(f"{what:<28}{time.monotonic() - self._begun:6.1f} s in all")


class Rising:
    """The parts of one cluster, for as long as it comes up."""

    def __init__(self, cluster: Cluster, clock: Clock | None = None) -> None:
        self._cluster, self._parts, self._clock = cluster, cluster.parts(), clock
        self._falls: Counter[str] = Counter()
        self._down: frozenset[str] = frozenset()

    def begin(self, *names: str) -> None:
        """Let supervisord know these and start them."""
        for name in names:
            conf = self._cluster.place.programs / f"{name}.conf"
            conf.touch(mode=0o600)
            conf.write_text(program_section(self._parts[name].program))
            self._cluster.supervisor.add(name)

    def reach(self, *names: str) -> None:
        """Wait until these are well.

        Raises:
            Unavailable: One does not become well in time, or any part ends again and again.
        """
        for name in names:
            part = self._parts[name]
            deadline = time.monotonic() + part.within_s
            while not part.healthy():
                self._look()
                if time.monotonic() > deadline:
                    raise Unavailable(complaint(part, f"is not well after {part.within_s:.0f} s"))
                time.sleep(_POLL_S)
            self.did(name)

    def did(self, what: str) -> None:
        """Say how long something else took, which has just been done."""
        self._look()
        if self._clock:
            self._clock.lap(what)

    def everything(self) -> None:
        """Wait until every part is well."""
        self.reach(*self._parts)

    def _look(self) -> None:
        """Count who has ended since the last look, awaited or not."""
        states = {name: process.state for name, process in self._cluster.supervisor.processes().items()}
        down = frozenset(name for name, state in states.items() if state not in _UP)
        self._falls.update(down - self._down)
        self._down = down
        for name in down:
            if self._falls[name] >= _FALLS_MAX:
                raise Unavailable(complaint(self._parts[name], "ends again and again"))


def complaint(part: Part, what: str) -> str:
    """The message that names a part that failed and shows the end of its log."""
    return f"{part.name} {what}; the end of {part.program.log}:\n{tail(part.program.log)}"


def stop(cluster: Cluster, *names: str) -> None:
    """Stop these parts, at once, and wait until they have ended; one that is not there is fine.

    Raises:
        Unavailable: One does not end.
    """
    supervisor = cluster.supervisor
    known = [name for name in names if name in supervisor.processes()]
    for name in known:
        supervisor.stop(name)
    until(
        lambda: all(supervisor.processes()[name].over for name in known),
        _STOPPED_WITHIN_S,
        f"to stop {', '.join(known)}",
    )


def until(true: Callable[[], bool], within_s: float, wanted: str) -> None:
    """Wait until `true`.

    Raises:
        Unavailable: It is not in time; `wanted` says what, as "the node to be ready".
    """
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            raise Unavailable(f"{within_s:.0f} s were not enough for {wanted}")
        time.sleep(_POLL_S)
