"""Which checks validate_data must have run; later steps ask here before they believe a verdict."""

from __future__ import annotations

from typing import Final

REQUIRED: Final = (
    "both_classes",
    "duplicate_rows",
    "expectations",
    "quarantine",
    "row_count",
    "split_overlap",
    "unique_ids",
)
