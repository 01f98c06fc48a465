"""Who may train on which row: decided by a hash of the row's id, for ever the same."""

from __future__ import annotations

import hashlib

import polars as pl

_SPACE = 2**64


def place(row_id: str) -> float:
    """Where an id falls in [0, 1): the first 8 bytes of its sha256, as a big-endian fraction."""
    return int.from_bytes(hashlib.sha256(row_id.encode()).digest()[:8], "big") / _SPACE


def split(rows: pl.DataFrame, *, by: str, holdout_share: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training rows and held-out rows.

    Rows with the same id fall on the same side, in this release and in every other: what a model was trained on is
    never what it or its successor is judged by.

    Args:
        rows: The rows.
        by: The id column.
        holdout_share: Share of ids that are held out, in (0, 1).
    """
    held_out = pl.Series([place(row_id) < holdout_share for row_id in rows[by]], dtype=pl.Boolean)
    return rows.filter(~held_out), rows.filter(held_out)
