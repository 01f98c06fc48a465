"""The step: read by the declared types, quarantine what does not fit, split by id, check, sign."""

from __future__ import annotations

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seatrial import digests, release, report, verdict
from seatrial.adapters import expectations, tables
from seatrial.data import checks, pictures, table
from seatrial.data.profile import profile as profile_of
from seatrial.data.required import REQUIRED
from seatrial.data.split import split
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
        checks=(
            checks.row_count(judged, data),
            checks.quarantine(judged, data),
            checks.unique_ids(judged.rows, data),
            checks.duplicate_rows(judged.rows, data),
            checks.split_overlap(train, holdout, data),
            checks.both_classes(train, holdout, data),
            expectations.check(judged.rows, wanted),
        ),
        judged={"data": digests.of_file(inputs.data), **{name: digests.of_file(path) for name, path in files.items()}},
    )
    _runtime.event("judged", gate=said.gate, decision=said.decision, reasons=said.reasons)
    looks = profile_of(judged.rows)
    (scratch / "profile.json").write_text(json.dumps(looks, default=str), encoding="utf-8")
    (scratch / "verdict.dsse.json").write_bytes(verdict.sign(said, signing_key))
    page = report.page(said, sections=[("Columns", pictures.columns_table(looks))])
    (scratch / "report.html").write_text(page, encoding="utf-8")
    return Outputs(
        decision=said.decision,
        reason=said.reason,
        train_rows=files["train_rows"],
        holdout_rows=files["holdout_rows"],
        profile=scratch / "profile.json",
        quarantine=scratch / "quarantine.parquet",
        verdict=scratch / "verdict.dsse.json",
        report=scratch / "report.html",
    )


if __name__ == "__main__":
    from seatrial.adapters import keys

    _runtime.main("validate_data", STEP, Inputs, lambda inputs, scratch: run(inputs, scratch, keys.signing_key()))
