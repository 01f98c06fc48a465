"""Time, from the machine's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """The port `Clock`."""

    def now(self) -> datetime:
        """The moment, UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait; not at all for zero or less."""
        if seconds > 0:
            time.sleep(seconds)


def from_environment() -> SystemClock:
    """The clock of this machine; nothing is read."""
    return SystemClock()
