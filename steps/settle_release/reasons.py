"""What a gate's verdict says, for people; nothing is decided by it, and so no signature is asked for."""

from __future__ import annotations

import base64
import json
from typing import Final

from seatrial import digests, papers
from seatrial.errors import StepError
from seatrial.ports import Store
from seatrial.verdict import Verdict
from steps.settle_release.history import Node

VERDICT: Final = "verdict"
"""The gates' output file."""


def of_verdict(node: Node, store: Store, release_id: str) -> list[str]:
    """The reasons in the verdict of a gate, each beginning with the name of its check; none when it cannot be read.

    It lies where the artifacts are kept, if that is in the store, or among the papers of its bundle. There a release
    before may have left one: what is not about this release says nothing.
    """
    digest = node.inputs.get("bundle-digest", "")
    paper = papers.key(digest, f"{node.template.replace('-', '_')}.dsse.json") if digest else ""
    for key in (node.artifacts.get(VERDICT), paper):
        try:
            raw = store.read(key) if key else None
            found = _verdict(raw) if raw is not None else None
            if found is not None and found.release_id == release_id:
                return list(found.reasons)
        except (StepError, ValueError, KeyError, TypeError):
            continue
    return []


def _verdict(envelope: bytes) -> Verdict:
    statement = json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    return Verdict.model_validate_json(digests.canonical(statement["predicate"]))
