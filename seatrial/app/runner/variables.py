"""`{{…}}`: found, and replaced once; what comes out is never read again for more."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from seatrial.errors import InvalidInput, shortened

_REFERENCE: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def references(text: str) -> list[str]:
    """The names between `{{` and `}}`, in order.

    Raises:
        InvalidInput: `{{=…}}` or something else that is not a name.
    """
    found = _REFERENCE.findall(text)
    for name in found:
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"{{{{{shortened(name)}}}}} is not a plain name; expressions are not rendered, so not known"
            )
    return found


def replaced(text: str, lookup: Callable[[str], str]) -> str:
    """`text` with each reference's value in its place."""
    return _REFERENCE.sub(lambda match: lookup(match.group(1)), text)
