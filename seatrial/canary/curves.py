"""The report's pictures: weights and evidence over time, as inline SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import exp, log
from typing import Final

from seatrial.canary.record import Look

WIDTH: Final = 440
"""Of the plot's inside; small, so that its letters can still be read when a phone shrinks it."""
HEIGHT: Final = 150
LEFT: Final = 34
TOP: Final = 26
BELOW: Final = 44
POINTS_MAX: Final = 600
"""Most looks drawn."""
LOG_E_LOW: Final = -3.0
"""Evidence under e^−3 is drawn at the lower edge."""
_FONT: Final = 'font-size="12" fill="currentColor" font-family="system-ui,sans-serif"'

Value = Callable[[Look], float]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a plot; it breaks where a stage ends, as what is between was not looked at."""

    name: str
    colour: str
    value: Value
    broad: bool = False
    """Drawn broad and pale, so that another line can lie on it."""


def weights(looks: Sequence[Look]) -> str:
    """The canary's weight in percent, asked for and observed."""
    asked = Line(name="asked for", colour="#0969da", value=lambda look: look.weight, broad=True)
    observed = Line(
        name="observed",
        colour="#bc4c00",
        value=lambda look: look.weight if look.counts is None else 100 * look.counts.share,
    )
    return _plot("Canary's share of traffic, %", looks, (asked, observed), marks={0: "0", 50: "50", 100: "100"})


def evidence(looks: Sequence[Look], alpha: float) -> str:
    """E-values for and against the candidate on a log scale; from the line at 1/α on they decide."""
    decides = log(1 / alpha)
    lines = (
        Line(name="for it, in this step", colour="#1a7f37", value=lambda look: look.pass_log_e),
        Line(name="against it, whole ramp", colour="#cf222e", value=lambda look: look.fail_log_e),
    )
    marks = {LOG_E_LOW: f"{exp(LOG_E_LOW):.2f}", 0: "1", decides: f"{1 / alpha:.3g}", 1.5 * decides: ""}
    return _plot(f"E-values; from {1 / alpha:.3g} on they decide", looks, lines, marks=marks)


def _plot(title: str, looks: Sequence[Look], lines: Sequence[Line], *, marks: Mapping[float, str]) -> str:
    """Lines over time; `marks` are heights with their labels, the outermost are the edges."""
    drawn = looks[:: max(1, len(looks) // POINTS_MAX)]
    if not drawn:
        return "<p>There was no look.</p>"
    start, low, high = drawn[0].at, min(marks), max(marks)
    seconds = max((drawn[-1].at - start).total_seconds(), 1e-9)

    def across(look: Look) -> float:
        return LEFT + WIDTH * (look.at - start).total_seconds() / seconds

    def up(value: float) -> float:
        return TOP + HEIGHT * (1 - (min(max(value, low), high) - low) / (high - low))

    parts = [_frame(title, seconds), *(_mark(up(value), label) for value, label in marks.items() if label)]
    for place, line in enumerate(lines):
        for _, stage in groupby(drawn, key=lambda look: look.stage):
            points = " ".join(f"{across(look):.1f},{up(line.value(look)):.1f}" for look in stage)
            parts.append(_stroke(points, line))
        parts.append(f'<text x="{LEFT + 150 * place}" y="{TOP + HEIGHT + 36}" fill="{line.colour}">{line.name}</text>')
    return "".join([*parts, "</svg>"])


def _frame(title: str, seconds: float) -> str:
    width, height = LEFT + WIDTH + 8, TOP + HEIGHT + BELOW
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width} {height}" '
        f'width="{1.4 * width:.0f}" {_FONT}>'
        f"<title>{escape(title)}</title>"
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#8888"/>'
        f'<text x="{LEFT}" y="{TOP - 9}">{escape(title)}</text>'
        f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 16}" text-anchor="end">after {seconds:.0f} s</text>'
    )


def _mark(height: float, label: str) -> str:
    return (
        f'<path d="M{LEFT} {height:.1f}h{WIDTH}" stroke="#8886" stroke-dasharray="4"/>'
        f'<text x="{LEFT - 5}" y="{height + 4:.1f}" text-anchor="end">{label}</text>'
    )


def _stroke(points: str, line: Line) -> str:
    """A stage with one look only is a dot: round ends make a line of no length visible."""
    width, opacity = (7, 0.35) if line.broad else (2, 1)
    whole = points if " " in points else f"{points} {points}"
    return (
        f'<polyline points="{whole}" fill="none" stroke="{line.colour}" stroke-width="{width}" '
        f'stroke-opacity="{opacity}" stroke-linecap="round"/>'
    )
