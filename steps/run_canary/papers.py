"""What the bundle's papers say, and whether they allow it near traffic; and the record that is kept beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from seatrial import bundle, release, verdict
from seatrial.canary import record
from seatrial.canary.record import Ending, Look, Opening
from seatrial.errors import IntegrityError, shortened
from seatrial.release import Release, Served
from seatrial.spec import Closed, Spec
from seatrial.triton import requests
from seatrial.triton.requests import Example
from steps.run_canary.contract import Inputs
from steps.run_canary.ports import Ports

VERDICT = "run_canary.dsse.json"
RECORD = "run_canary.record.jsonl"

Kind = TypeVar("Kind", bound=Closed)


@dataclass(frozen=True, kw_only=True)
class Papers:
    """Of the bundle on trial."""

    spec: Spec
    release: Release
    """As it was resolved, with this run's version and release id."""
    golden: tuple[Example, ...]
    replay: tuple[Example, ...]


def read(inputs: Inputs, ports: Ports) -> Papers:
    """The papers, when the three earlier gates allow this bundle.

    Raises:
        IntegrityError: A paper is missing or altered, a verdict is not one of ours, no pass or about something else,
            or the version was deployed from another bundle.
    """
    spec = _parsed(Spec, _paper(inputs, ports, "spec.json"))
    envelopes = {gate: ports.store.read(_key(inputs, f"{gate}.dsse.json")) for gate in verdict.BEFORE_DEPLOY}
    verdict.require_all(
        envelopes,
        ports.trusted_keys,
        bundle=inputs.bundle_digest,
        model_name=inputs.model_name,
        policy=spec.policy_digest,
    )
    served = _parsed(Served, ports.store.read(release.served_key(inputs.model_name, inputs.version)) or b"")
    if (served.version, served.bundle) != (inputs.version, inputs.bundle_digest):
        raise IntegrityError(f"v{inputs.version} serves bundle {served.bundle}; on trial is {inputs.bundle_digest}")
    resolved = _parsed(Release, _paper(inputs, ports, "release.json"))
    return Papers(
        spec=spec,
        release=resolved.model_copy(update={"version": inputs.version, "release_id": inputs.release_id}),
        golden=_examples(_paper(inputs, ports, "golden.jsonl")),
        replay=_examples(_paper(inputs, ports, "replay.jsonl")),
    )


def keep(inputs: Inputs, ports: Ports, name: str, data: bytes) -> None:
    """Write a paper."""
    ports.store.write(_key(inputs, name), data)


def kept_record(inputs: Inputs, ports: Ports) -> tuple[bytes, Opening, list[Look], Ending] | None:
    """The record that an earlier attempt of this run kept; None: it kept none.

    Raises:
        IntegrityError: What it says does not follow from its counts.
    """
    text = ports.store.read(_key(inputs, RECORD))
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


def _paper(inputs: Inputs, ports: Ports, name: str) -> bytes:
    found = ports.store.read(_key(inputs, name))
    if found is None:
        raise IntegrityError(f"the papers of bundle {inputs.bundle_digest} hold no {name}: package it again")
    return found


def _key(inputs: Inputs, name: str) -> str:
    return f"{bundle.papers_prefix(inputs.bundle_digest)}/{name}"


def _examples(text: bytes) -> tuple[Example, ...]:
    try:
        return tuple(requests.parse(text))
    except (ValueError, TypeError) as error:
        raise IntegrityError(f"the papers hold requests that cannot be read: {shortened(error)}") from error


def _parsed(kind: type[Kind], raw: bytes) -> Kind:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise IntegrityError(f"the store holds no readable {kind.__name__.lower()}: {shortened(error)}") from error
