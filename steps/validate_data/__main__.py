"""The step: read by the declared types, quarantine what does not fit, split by id, check, sign."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seatrial import digests, release, report, verdict
from seatrial.adapters import expectations, tables
from seatrial.data import checks, pictures, table
from seatrial.data.profile import profile as profile_of
from seatrial.data.required import REQUIRED
from seatrial.data.split import split
from seatrial.data.table import Table
from seatrial.spec import Data
from seatrial.verdict import Check, Verdict
from steps import _runtime
from steps._source import spec_of
from steps.validate_data.contract import STEP, Inputs, Outputs


def run(inputs: Inputs, scratch: Path, signing_key: Ed25519PrivateKey) -> Outputs:
    """Judge the data and split it.

    Raises:
        InvalidInput: The file is no table with the declared columns, or the suite is none.
        IntegrityError: The source's spec is not the one of the release.
    """
    about = release.read(inputs.release)
    spec = spec_of(inputs.source, about)
    data = spec.data
    wanted = expectations.read(inputs.source / data.expectations)

    judged = table.typed(tables.read_text(inputs.data, data), data)
    train, holdout = split(judged.rows, by=data.id, holdout_share=data.holdout_share)
    files = {"train_rows": scratch / "train.parquet", "holdout_rows": scratch / "holdout.parquet"}
    train.write_parquet(files["train_rows"])
    holdout.write_parquet(files["holdout_rows"])
    judged.quarantined.write_parquet(scratch / "quarantine.parquet")

    said = verdict.conclude(
        "validate_data",
        about,
        spec,
        required=REQUIRED,
        checks=(*_checks(judged, train, holdout, data), expectations.check(judged.rows, wanted)),
        judged={"data": digests.of_file(inputs.data), **{name: digests.of_file(path) for name, path in files.items()}},
    )
    _runtime.event("judged", gate=said.gate, decision=said.decision, reasons=said.reasons)
    return Outputs(
        decision=said.decision,
        reason=said.reason,
        **files,
        quarantine=scratch / "quarantine.parquet",
        **_shown(judged.rows, said, scratch, signing_key),
    )


def _checks(judged: Table, train: pl.DataFrame, holdout: pl.DataFrame, data: Data) -> tuple[Check, ...]:
    """What every dataset must be, whatever its owner expects of it."""
    return (
        checks.row_count(judged, data),
        checks.quarantine(judged, data),
        checks.unique_ids(judged.rows, data),
        checks.duplicate_rows(judged.rows, data),
        checks.split_overlap(train, holdout, data),
        checks.both_classes(train, holdout, data),
    )


def _shown(rows: pl.DataFrame, said: Verdict, scratch: Path, signing_key: Ed25519PrivateKey) -> dict[str, Path]:
    """The files that show it: the profile, the signed verdict and the report."""
    names = {"profile": "profile.json", "verdict": "verdict.dsse.json", "report": "report.html"}
    files = {name: scratch / file for name, file in names.items()}
    looks = profile_of(rows)
    files["profile"].write_text(json.dumps(looks, default=str), encoding="utf-8")
    files["verdict"].write_bytes(verdict.sign(said, signing_key))
    page = report.page(said, sections=[("Columns", pictures.columns_table(looks))])
    files["report"].write_text(page, encoding="utf-8")
    return files


if __name__ == "__main__":
    from seatrial.adapters import keys

    _runtime.main("validate_data", STEP, Inputs, lambda inputs, scratch: run(inputs, scratch, keys.signing_key()))
