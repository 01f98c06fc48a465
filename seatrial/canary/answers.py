"""What replayed requests came back with. The right answers are the candidate's own, so only its answers are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SUSPECTS_MAX: Final = 20
"""Most requests with a wrong answer that are remembered, to be asked again."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Since the replay began."""

    answered: Mapping[int, int] = field(default_factory=dict)
    """Version → answers with status 200."""
    failed: int = 0
    """Answers with another status."""
    lost: int = 0
    """Requests without an answer."""
    right: int = 0
    """Of the candidate's answers, those within tolerance."""
    wrong: int = 0
    """Of the candidate's answers, the others."""
    suspects: tuple[str, ...] = ()
    """Ids of requests that the candidate answered wrong, oldest first, at most `SUSPECTS_MAX`."""

    @property
    def requests(self) -> int:
        """All that were sent and are over."""
        return sum(self.answered.values()) + self.failed + self.lost
