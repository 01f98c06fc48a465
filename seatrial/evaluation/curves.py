"""Two small pictures for the report, as inline SVG: the ROC curve and the calibration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

import numpy as np

from seatrial.evaluation.metrics import Floats

SIDE: Final = 260
"""Pixels of the plot's inner square."""
EDGE: Final = 34
POINTS_MAX: Final = 200
"""Most points per line: more cannot be seen."""
BINS: Final = 10
_FONT: Final = 'font-size="11" fill="currentColor" font-family="system-ui,sans-serif"'
COLOURS: Final = ("#0969da", "#bc4c00")


def roc(label: Floats, answers: Mapping[str, Floats]) -> str:
    """True against false positive rate over all thresholds; one line per model. Label holds both classes."""
    lines = {}
    for name, probability in answers.items():
        order = np.argsort(-probability, kind="stable")
        last = np.flatnonzero(np.diff(probability[order], append=-np.inf))
        hits, falls = np.cumsum(label[order])[last], np.cumsum(1 - label[order])[last]
        lines[name] = _thinned(np.append(0, falls / falls[-1]), np.append(0, hits / hits[-1]))
    return _plot("ROC curve", "false positive rate", "true positive rate", lines, top=1.0)


def calibration(label: Floats, answers: Mapping[str, Floats]) -> str:
    """Share of label 1 against the mean answer, in ten groups of equally many rows; on the diagonal is right."""
    lines = {}
    top = 0.0
    for name, probability in answers.items():
        groups = [g for g in np.array_split(np.argsort(probability, kind="stable"), BINS) if len(g)]
        said = np.array([probability[g].mean() for g in groups])
        came = np.array([label[g].mean() for g in groups])
        lines[name] = (said, came)
        top = max(top, float(said.max()), float(came.max()))
    return _plot("Calibration", "mean answer", "share of label 1", lines, top=top or 1.0)


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    keep = np.unique(np.linspace(0, len(x) - 1, min(POINTS_MAX, len(x))).astype(int))
    return x[keep], y[keep]


def _plot(title: str, across: str, up: str, lines: Mapping[str, tuple[Floats, Floats]], *, top: float) -> str:
    side = SIDE + 2 * EDGE
    parts = [
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {side} {side + 20}" width="{side}" {_FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect x="{EDGE}" y="{EDGE}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#8888"/>',
        f'<path d="M{EDGE} {EDGE + SIDE}L{EDGE + SIDE} {EDGE}" stroke="#8888" stroke-dasharray="4"/>',
        f'<text x="{EDGE}" y="{EDGE - 20}" font-weight="600">{escape(title)}</text>',
        f'<text x="{EDGE}" y="{EDGE - 5}">{escape(up)}, 0 to {top:.2g}</text>',
        f'<text x="{EDGE + SIDE}" y="{EDGE + SIDE + 16}" text-anchor="end">{escape(across)}, 0 to {top:.2g}</text>',
        *_lines(lines, top),
        "</svg>",
    ]
    return "".join(parts)


def _lines(lines: Mapping[str, tuple[Floats, Floats]], top: float) -> Iterable[str]:
    for index, (name, (x, y)) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(
            f"{EDGE + SIDE * across / top:.1f},{EDGE + SIDE * (1 - up / top):.1f}"
            for across, up in zip(x, y, strict=True)
        )
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        place = EDGE + SIDE + 34
        yield f'<text x="{EDGE + 110 * index}" y="{place}" fill="{colour}">{escape(name)}</text>'
