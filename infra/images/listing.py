"""Images as lines for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from infra.images.build import MEGABYTE, Report
from infra.images.built import Built
from infra.images.catalogue import named


def line(report: Report) -> str:
    """One image, as it is done."""
    made = report.built
    how = "built" if report.new else "unchanged"
    return (
        f"{made.name:<26} {how:<9} {report.seconds:6.1f} s {made.bytes / MEGABYTE:7.1f} MB compressed "
        f"{made.unpacked_bytes / MEGABYTE:7.1f} MB unpacked"
    )


def table(images: Mapping[str, Built]) -> str:
    """Name, digest and sizes in MB, each beside its bound; largest first."""
    rows: list[tuple[str, ...]] = [("IMAGE", "DIGEST", "MB", "MOST", "UNPACKED", "MOST")]
    rows += [_row(made) for made in sorted(images.values(), key=lambda made: -made.bytes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(_aligned(row, widths) for row in rows)


def as_json(images: Mapping[str, Built]) -> str:
    """The same with whole digests and bytes."""
    entries = {
        name: {"digest": made.digest, "bytes": made.bytes, "unpacked_bytes": made.unpacked_bytes, "user": made.user}
        for name, made in sorted(images.items())
    }
    return json.dumps(entries, indent=2)


def _row(made: Built) -> tuple[str, ...]:
    image = named(made.name)
    return (
        made.name,
        made.digest,
        f"{made.bytes / MEGABYTE:.1f}",
        str(image.packed_mb),
        f"{made.unpacked_bytes / MEGABYTE:.1f}",
        str(image.unpacked_mb),
    )


def _aligned(row: Iterable[str], widths: list[int]) -> str:
    name, digest, *sizes = (
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([name, digest, *sizes])
