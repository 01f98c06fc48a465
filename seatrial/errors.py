"""What can go wrong, in our own words.

StepError            1   a bug: nothing that the user gave explains it
├── InvalidInput    78   the input is wrong: doing the same again fails the same
│   └── Frozen      78   somebody changed the route by hand: automation waits until a person says `seatrial adopt`
├── Superseded       1   a newer release owns the route: no error but a result, which every step turns into an outcome
├── Unavailable     75   something that is needed is away: trying again may help
│   └── Conflict    75   somebody else changed the object first: read it again
└── IntegrityError  76   a digest or a signature does not match: alert, never retry

The error, not the caller, knows whether a retry helps. Adapters translate every error of their library into one of
these, with ``from``. A message says whose fault it is, what was wanted, what came and what to do: in lower case,
without a secret, foreign text cut by `shortened`.
"""

from __future__ import annotations

import errno
from typing import ClassVar, Final

FOREIGN_TEXT_MAX = 256
"""Most characters of somebody else's text (a response body, a value) that a message repeats."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_CLOSED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class StepError(Exception):
    """A bug of ours."""

    exit_code: ClassVar[int] = 1


class InvalidInput(StepError):
    """What was given is wrong; the same input will fail again."""

    exit_code = 78


class Frozen(InvalidInput):
    """The route is not as one of ours wrote it; automation leaves it alone until a person says `seatrial adopt`."""


class Superseded(StepError):
    """Another release owns the route, or another champion serves than the one judged against; caught by the steps."""


class Unavailable(StepError):
    """A system that is needed does not answer; trying again may help."""

    exit_code = 75


class Conflict(Unavailable):
    """The object changed since it was read (HTTP 409): read it again and decide anew."""


class IntegrityError(StepError):
    """A digest or a signature does not match what it should."""

    exit_code = 76


def shortened(text: object) -> str:
    """`text` on one line and at most `FOREIGN_TEXT_MAX` characters long."""
    line = " ".join(str(text).split())
    return line if len(line) <= FOREIGN_TEXT_MAX else line[: FOREIGN_TEXT_MAX - 1] + "…"


def of_disk(error: OSError) -> StepError | None:
    """What a file system says, in our words; None: it is something else, and a bug like any other."""
    place = shortened(error.filename or "the file system")
    if error.errno in _FULL:
        return Unavailable(f"{place} cannot be written, the disk is full: make room, then try again")
    if error.errno in _CLOSED:
        return InvalidInput(f"{place} cannot be used: {(error.strerror or '').lower()}; open it, or name another place")
    return None
