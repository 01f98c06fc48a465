"""The report's pictures: weights and evidence over time, as inline SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from math import log
from typing import Final

from seatrial.canary.record import Look

WIDTH: Final = 640
HEIGHT: Final = 150
EDGE: Final = 40
POINTS_MAX: Final = 600
"""Most looks drawn."""
LOG_E_LOW: Final = -3.0
"""Evidence under e^−3 is drawn at the lower edge."""
_FONT: Final = 'font-size="11" fill="currentColor" font-family="system-ui,sans-serif"'

Value = Callable[[Look], float]


def weights(looks: Sequence[Look]) -> str:
    """The canary's weight in percent, asked for and observed."""
    lines: list[tuple[str, str, Value]] = [
        ("asked for", "#0969da", lambda look: look.weight),
        ("observed", "#bc4c00", lambda look: look.weight if look.counts is None else 100 * look.counts.share),
    ]
    return _plot("Canary's share of traffic, %", looks, lines, low=0.0, high=100.0)


def evidence(looks: Sequence[Look], alpha: float) -> str:
    """Log e-values for and against the candidate; the dashed line is log 1/α, where they decide."""
    high = log(1 / alpha) * 1.5
    lines: list[tuple[str, str, Value]] = [
        ("for it, in this step", "#1a7f37", lambda look: look.pass_log_e),
        ("against it, whole ramp", "#cf222e", lambda look: look.fail_log_e),
    ]
    return _plot("Log e-value", looks, lines, low=LOG_E_LOW, high=high, mark=log(1 / alpha))


def _plot(
    title: str,
    looks: Sequence[Look],
    lines: Sequence[tuple[str, str, Value]],
    *,
    low: float,
    high: float,
    mark: float | None = None,
) -> str:
    drawn = looks[:: max(1, len(looks) // POINTS_MAX)]
    if not drawn:
        return "<p>There was no look.</p>"
    start, end = drawn[0].at, drawn[-1].at
    seconds = max((end - start).total_seconds(), 1e-9)

    def across(at: datetime) -> float:
        return EDGE + WIDTH * (at - start).total_seconds() / seconds

    def up(value: float) -> float:
        return EDGE + HEIGHT * (1 - (min(max(value, low), high) - low) / (high - low))

    box = f"0 0 {WIDTH + 2 * EDGE} {HEIGHT + 2 * EDGE + 20}"
    parts = [
        f'<svg role="img" aria-label="{escape(title)}" viewBox="{box}" {_FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect x="{EDGE}" y="{EDGE}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#8888"/>',
        f'<text x="{EDGE}" y="{EDGE - 8}">{escape(title)} ({low:.3g} to {high:.3g})</text>',
        f'<text x="{EDGE + WIDTH}" y="{EDGE + HEIGHT + 16}" text-anchor="end">{seconds:.0f} s</text>',
    ]
    if mark is not None:
        parts.append(f'<path d="M{EDGE} {up(mark):.1f}h{WIDTH}" stroke="#8888" stroke-dasharray="4"/>')
    for place, (name, colour, value) in enumerate(lines):
        points = " ".join(f"{across(look.at):.1f},{up(value(look)):.1f}" for look in drawn)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{EDGE + 170 * place}" y="{EDGE + HEIGHT + 34}" fill="{colour}">{escape(name)}</text>')
    return "".join([*parts, "</svg>"])
