"""The bundle's papers, which must allow it near traffic; and the record that is kept beside them."""

from __future__ import annotations

from dataclasses import replace

from seatrial import papers, release
from seatrial.canary import record
from seatrial.canary.record import Ending, Look, Opening
from seatrial.errors import IntegrityError
from steps import _papers
from steps._papers import Papers
from steps.run_canary.contract import Inputs
from steps.run_canary.ports import Ports

VERDICT = "run_canary.dsse.json"
RECORD = "run_canary.record.jsonl"


def read(inputs: Inputs, ports: Ports) -> Papers:
    """The papers, when the earlier gates allow this bundle near traffic; their release bears this run's id.

    Raises:
        IntegrityError: A paper is missing or altered, a verdict is not one of ours, no pass or about something else,
            or the version was deployed from another bundle.
    """
    known = _papers.believed(
        ports.store,
        ports.trusted_keys,
        bundle=inputs.bundle_digest,
        model_name=inputs.model_name,
        version=inputs.version,
    )
    served = release.serving(ports.store, inputs.model_name, inputs.version)
    if served.bundle != inputs.bundle_digest:
        raise IntegrityError(f"v{inputs.version} serves bundle {served.bundle}; on trial is {inputs.bundle_digest}")
    return replace(known, release=known.release.model_copy(update={"release_id": inputs.release_id}))


def keep(inputs: Inputs, ports: Ports, name: str, data: bytes) -> None:
    """Write a paper."""
    ports.store.write(papers.key(inputs.bundle_digest, name), data)


def kept_record(inputs: Inputs, ports: Ports) -> tuple[bytes, Opening, list[Look], Ending] | None:
    """The record that an earlier attempt of this run kept; None: it kept none.

    Raises:
        IntegrityError: What it says does not follow from its counts.
    """
    text = ports.store.read(papers.key(inputs.bundle_digest, RECORD))
    entries = record.read(text or b"")
    if text is None or not isinstance(entries[0], Opening) or not isinstance(entries[-1], Ending):
        return None
    opening, ending = entries[0], entries[-1]
    if (opening.release_id, opening.version, opening.bundle) != (
        inputs.release_id,
        inputs.version,
        inputs.bundle_digest,
    ):
        return None
    looks = [entry for entry in entries if isinstance(entry, Look)]
    follows = record.recompute(opening, looks).decision
    if ending.decision == "pass" and follows != "pass":
        raise IntegrityError(f"the kept record of v{inputs.version} says pass; from its counts follows {follows}")
    return text, opening, looks, ending
