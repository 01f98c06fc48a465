"""A gate's verdict: what was decided, why, on what evidence, over which bytes; signed.

A verdict that says pass cannot be made without a check that ran, nor with fewer checks than the spec lists, nor
with one that did not pass. On the wire it is a DSSE envelope around an in-toto Statement.
Source: secure-systems-lab/dsse protocol.md v1.0; in-toto/attestation spec v1.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Final, Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import Field, ValidationError, model_validator

from seatrial import digests
from seatrial.digests import Digest
from seatrial.errors import IntegrityError, shortened
from seatrial.names import ModelName
from seatrial.release import Release
from seatrial.spec import Closed, Decision, Spec

Gate = Literal["validate_data", "evaluate_model", "package_model", "run_canary"]
Fact = str | int | float | bool | None

BEFORE_DEPLOY: Final[tuple[Gate, ...]] = ("validate_data", "evaluate_model", "package_model")
"""The gates whose verdicts must be there, signed and passed, before a bundle gets near traffic."""

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://seatrial.dev/verdict/v1"


class Check(Closed):
    """One thing that a gate looked at."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", description="the rule, like unique_ids")
    decision: Decision
    reason: str = Field(min_length=1, description="in words: what was wanted, what came")
    evidence: dict[str, Fact] = Field(default_factory=dict, description="the numbers behind it")


class Verdict(Closed):
    """What a gate decided; make it with `conclude`."""

    gate: Gate
    model_name: ModelName
    version: int = Field(ge=1)
    release_id: str
    decision: Decision
    required: tuple[str, ...] = Field(min_length=1, description="checks that the spec lists for this gate")
    checks: tuple[Check, ...]
    judged: dict[str, Digest] = Field(min_length=1, description="what was judged: holdout, model, bundle … → digest")
    policy: Digest = Field(description="of the part of the spec that the gate judged by")

    @model_validator(mode="after")
    def _decision_follows(self) -> Self:
        names = [check.name for check in self.checks]
        if len(set(names)) != len(names):
            raise ValueError(f"every check of a verdict has a name of its own; got {names}")
        follows = _follows(self.required, self.checks)
        if self.decision != follows:
            raise ValueError(f"{self.gate} says {self.decision}, its checks say {follows}")
        return self

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not a pass; empty for a pass."""
        missing = sorted(set(self.required) - {check.name for check in self.checks})
        return (
            *(f"{check.name}: {check.reason}" for check in self.checks if check.decision == "fail"),
            *(f"{check.name}: {check.reason}" for check in self.checks if check.decision == "inconclusive"),
            *(f"{name}: never ran" for name in missing),
        )

    @property
    def reason(self) -> str:
        """The first of the reasons, in one short line; empty for a pass."""
        return shortened(next(iter(self.reasons), ""))


def _follows(required: Iterable[str], checks: Iterable[Check]) -> Decision:
    """Fail if one fails; inconclusive if one is, or one that is required is missing, or there is none; else pass."""
    decisions = {check.name: check.decision for check in checks}
    if "fail" in decisions.values():
        return "fail"
    complete = bool(decisions) and set(required) <= decisions.keys()
    return "pass" if complete and set(decisions.values()) == {"pass"} else "inconclusive"


def conclude(
    gate: Gate,
    release: Release,
    spec: Spec,
    *,
    required: Iterable[str],
    checks: Iterable[Check],
    judged: Mapping[str, str],
) -> Verdict:
    """The verdict that follows from `checks`; a required check that is not among them makes it inconclusive."""
    ran = tuple(checks)
    wanted = tuple(sorted(required))
    return Verdict(
        gate=gate,
        model_name=release.model_name,
        version=release.version,
        release_id=release.release_id,
        decision=_follows(wanted, ran),
        required=wanted,
        checks=ran,
        judged=dict(judged),
        policy=spec.policy_digest,
    )


def key_id(key: Ed25519PublicKey) -> str:
    """A public key's name: the digest of its raw 32 bytes."""
    return digests.of_bytes(key.public_bytes(Encoding.Raw, PublicFormat.Raw))


def sign(verdict: Verdict, key: Ed25519PrivateKey) -> bytes:
    """The verdict as a DSSE envelope, JSON. The same verdict and key give the same bytes (Ed25519 is deterministic)."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}
            for name, digest in sorted(verdict.judged.items())
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": verdict.model_dump(mode="json"),
    }
    payload = digests.canonical(statement)
    return digests.canonical(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [
                {"keyid": key_id(key.public_key()), "sig": base64.b64encode(key.sign(_to_be_signed(payload))).decode()}
            ],
        }
    )


def verify(envelope: bytes, trusted: Iterable[Ed25519PublicKey]) -> Verdict:
    """The verdict in an envelope that one of the trusted keys signed.

    Raises:
        IntegrityError: Not an envelope, unsigned, altered, or signed by a key that is not trusted.
    """
    keys = {key_id(key): key for key in trusted}
    try:
        outer = json.loads(envelope)
        payload = base64.b64decode(outer["payload"], validate=True)
        signatures = [(str(s["keyid"]), base64.b64decode(s["sig"], validate=True)) for s in outer["signatures"]]
        payload_type = outer["payloadType"]
    except (ValueError, KeyError, TypeError, binascii.Error, RecursionError) as error:
        raise IntegrityError(f"a verdict must be a DSSE envelope; got {shortened(envelope[:80])!r}") from error
    if payload_type != PAYLOAD_TYPE:
        raise IntegrityError(f"a verdict's payloadType is {PAYLOAD_TYPE}; got {shortened(payload_type)!r}")
    if not any(name in keys and _signed(keys[name], signature, payload) for name, signature in signatures):
        names = [shortened(name) for name, _ in signatures] or "none"
        raise IntegrityError(f"the verdict has no valid signature of a trusted key {sorted(keys)}; signed by {names}")
    return _stated(payload)


def claimed(envelope: bytes) -> Verdict:
    """What an envelope says, whoever signed it: to be shown to people; nothing may be decided by it.

    Raises:
        IntegrityError: It holds no verdict.
    """
    try:
        payload = base64.b64decode(json.loads(envelope)["payload"], validate=True)
    except (ValueError, KeyError, TypeError, binascii.Error, RecursionError) as error:
        raise IntegrityError(f"a verdict must be a DSSE envelope; got {shortened(envelope[:80])!r}") from error
    return _stated(payload)


def _stated(payload: bytes) -> Verdict:
    try:
        return Verdict.model_validate_json(digests.canonical(json.loads(payload)["predicate"]))
    except (ValueError, KeyError, TypeError, ValidationError, RecursionError) as error:
        raise IntegrityError(f"the signed statement is no verdict: {shortened(error)}") from error


def require_all(
    envelopes: Mapping[Gate, bytes | None],
    trusted: Iterable[Ed25519PublicKey],
    *,
    bundle: str,
    model_name: str,
) -> dict[Gate, Verdict]:
    """The verdicts of all gates before deploy, when every one of them allows this bundle.

    They must be signed by a trusted key, passed, of one release and version of this model, judged by one policy, and
    hang together: package_model judged the bundle, and the model and rows that the others judged are the same.

    Args:
        envelopes: Gate → DSSE envelope as the papers hold it; None or no entry: it is not there.
        trusted: Keys that are believed.
        bundle: Digest of the bundle.
        model_name: The model.

    Raises:
        IntegrityError: One is missing, altered, foreign, no pass, or about something else.
    """
    keys = tuple(trusted)
    found = {gate: _passed(gate, envelopes.get(gate), keys) for gate in BEFORE_DEPLOY}
    package, evaluation = found["package_model"], found["evaluate_model"]
    wanted = (model_name, package.release_id, package.version, package.policy)
    for gate, one in found.items():
        came = (one.model_name, one.release_id, one.version, one.policy)
        if came != wanted:
            raise IntegrityError(f"{gate}'s verdict must be of model, release, version, policy {wanted}; got {came}")
    _same("bundle", "package_model", package.judged.get("bundle"), bundle)
    _same("model", "package_model", package.judged.get("model"), evaluation.judged.get("model"))
    rows = evaluation.judged.get("holdout_rows")
    _same("holdout_rows", "validate_data", found["validate_data"].judged.get("holdout_rows"), rows)
    return found


def _passed(gate: Gate, envelope: bytes | None, keys: Iterable[Ed25519PublicKey]) -> Verdict:
    if envelope is None:
        raise IntegrityError(f"the bundle's papers hold no verdict of {gate}: it must not be served")
    found = verify(envelope, keys)
    if found.gate != gate:
        raise IntegrityError(f"a verdict of {gate} is needed; got one of {found.gate}")
    if found.decision != "pass":
        raise IntegrityError(f"{gate} must have passed; it says {found.decision}: {'; '.join(found.reasons)}")
    return found


def _same(what: str, gate: Gate, came: str | None, wanted: str | None) -> None:
    if came is None or came != wanted:
        raise IntegrityError(f"{gate} judged {what} {came}; wanted is {wanted}")


def _signed(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    try:
        key.verify(signature, _to_be_signed(payload))
    except InvalidSignature:
        return False
    return True


def _to_be_signed(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding. Source: DSSE protocol.md, "Signature Definition"."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
