"""How a release ended, on one line."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

DIGEST_SHOWN: Final = len("sha256:") + 12
REASON_MAX: Final = 200


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A release that is over."""

    outcome: str
    model: str
    version: int | None
    """None: it never got one."""
    exit_code: int
    seconds: float
    reasons: tuple[str, ...] = ()
    """The first says why it was not promoted; it begins with the name of the check where there is one."""
    bundle: str | None = None
    image: str | None = None
    """repository@sha256:…"""
    run: str = ""
    reports: tuple[Path, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def facts(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {**asdict(self), "seconds": round(self.seconds, 1), "reports": [str(path) for path in self.reports]}


def line(ended: Ended) -> str:
    """`promoted cart_abandonment v1  bundle sha256:…  image sha256:…  71 s`; the others say why in place of digests."""
    who = f"{ended.outcome} {ended.model}" + (f" v{ended.version}" if ended.version else "")
    time = f"{ended.seconds:.0f} s"
    if ended.outcome == "promoted":
        image = (ended.image or "").rpartition("@")[2]
        return f"{who}  bundle {(ended.bundle or '?')[:DIGEST_SHOWN]}  image {(image or '?')[:DIGEST_SHOWN]}  {time}"
    if ended.outcome == "unchanged" or not ended.reasons:
        return f"{who}  {time}"
    reason = " ".join(ended.reasons[0].split())
    return f"{who}  {reason if len(reason) <= REASON_MAX else reason[: REASON_MAX - 1] + '…'}  {time}"
