"""A profile as people look at it: a table with one small picture per column, inline SVG."""

from __future__ import annotations

import itertools
from html import escape
from typing import Any, Final

WIDTH, HEIGHT, BARS = 160, 32, 20
_FILL: Final = "currentColor"


def columns_table(profile: dict[str, Any]) -> str:
    """Every column of a profile: type, missing share, picture, and the words that matter."""
    rows = (
        f"<tr><td>{escape(name)}<td>{escape(about['dtype'])}<td>{about['missing_share']:.1%}"
        f"<td>{_picture(about)}<td>{escape(_words(about))}</tr>"
        for name, about in profile["columns"].items()
    )
    return f"<table><tr><th>Column<th>Type<th>Missing<th>Values<th></tr>{''.join(rows)}</table>"


def _picture(about: dict[str, Any]) -> str:
    if about.get("quantiles"):
        return _bars(_histogram(about["quantiles"]))
    if about.get("counts"):
        return _bars([*about["counts"].values()][:BARS])
    return ""


def _histogram(quantiles: list[float]) -> list[float]:
    """Share of rows per equal-width bin; between two quantiles rows are taken as spread evenly."""
    low, high = quantiles[0], quantiles[-1]
    if low == high:
        return [1.0]
    width = (high - low) / BARS
    bins = [0.0] * BARS
    for left, right in itertools.pairwise(quantiles):
        middle = (left + right) / 2
        bins[min(BARS - 1, int((middle - low) / width))] += 1
    return bins


def _bars(heights: list[float]) -> str:
    top, step = max(heights), WIDTH / len(heights)
    bars = "".join(
        f'<rect x="{index * step:.1f}" y="{HEIGHT * (1 - height / top):.1f}" width="{step * 0.9:.1f}" '
        f'height="{HEIGHT * height / top:.1f}"/>'
        for index, height in enumerate(heights)
    )
    return f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" fill="{_FILL}">{bars}</svg>'


def _words(about: dict[str, Any]) -> str:
    if about.get("quantiles"):
        quantiles = about["quantiles"]
        return f"{quantiles[0]:.4g} … median {quantiles[len(quantiles) // 2]:.4g} … {quantiles[-1]:.4g}"
    if about.get("counts"):
        most = list(about["counts"].items())[:3]
        return ", ".join(f"{word} {count}" for word, count in most) + f"; {about['distinct']} in all"
    if "first" in about:
        return f"{about['first']} … {about['last']}"
    return f"{about.get('distinct', 0)} different values"
