"""What is known of the bundle, kept beside it in the store; the verdicts last, when all the rest is there."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial import digests, papers
from seatrial.adapters import trees
from seatrial.bundle import Bundle
from seatrial.digests import canonical
from seatrial.ports import Store
from seatrial.release import Release
from seatrial.spec import Spec
from seatrial.triton import requests
from seatrial.triton.requests import Example
from steps.package_model.contract import Inputs


def of(
    inputs: Inputs, spec: Spec, release: Release, sealed: Bundle, examples: Mapping[str, list[Example]]
) -> dict[str, bytes]:
    """Every paper but this gate's own verdict, by name, in the order in which they are written."""
    return {
        "release.json": canonical(release.model_dump(mode="json")),
        "spec.json": canonical(spec.model_dump(mode="json")),
        "sbom.cdx.json": canonical(sbom(sealed)),
        "profile.json": inputs.profile.read_bytes(),
        "training-record.json": inputs.training_record.read_bytes(),
        "model-card.md": inputs.model_card.read_bytes(),
        "validate_data.html": inputs.data_report.read_bytes(),
        "evaluate_model.html": inputs.evaluation_report.read_bytes(),
        **{f"{name}.jsonl": requests.lines(chosen) for name, chosen in examples.items()},
        "validate_data.dsse.json": inputs.data_verdict.read_bytes(),
        "evaluate_model.dsse.json": inputs.evaluation_verdict.read_bytes(),
    }


def judged(known: Mapping[str, bytes]) -> dict[str, str]:
    """Paper → digest: what this gate's verdict covers, so that nobody can exchange a paper beside it."""
    return {name: digests.of_bytes(data) for name, data in known.items()}


def keep(store: Store, root: Path, known: Mapping[str, bytes], envelope: bytes) -> int:
    """Write the bundle under `root`, its papers and this gate's verdict, in that order; the bytes of it.

    A bundle is written once. Its papers are of the latest release that passed with it: a model that is released again
    gets verdicts of its own, which name their release.
    """
    sealed = trees.put_bundle(store, root)
    for name, data in {**known, "package_model.dsse.json": envelope}.items():
        store.write(papers.key(sealed.digest, name), data)
    return sum(len(data) for data in known.values()) + len(envelope)


def sbom(sealed: Bundle) -> dict[str, Any]:
    """The bundle's files as a CycloneDX 1.5 bill of materials; no time in it, so that equal bundles have equal ones.

    Source: CycloneDX specification 1.5, `machine-learning-model` and `file` components.
    """
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, sealed.digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "machine-learning-model",
                "bom-ref": sealed.digest,
                "name": sealed.model_name,
                "version": sealed.digest,
                "hashes": [_hash(sealed.model_digest)],
            }
        },
        "components": [
            {"type": "file", "bom-ref": f"file:{path}", "name": path, "hashes": [_hash(digest)]}
            for path, digest in sorted(sealed.files.items())
        ],
    }


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest.removeprefix("sha256:")}
