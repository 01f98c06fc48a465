"""A verdict cannot say pass without its checks, and cannot be believed without its signature."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import fakes_release as made
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seatrial import verdict
from seatrial.errors import IntegrityError
from seatrial.release import Release
from seatrial.spec import Decision
from seatrial.verdict import Check, Verdict

SPEC = made.spec_of()
RELEASE = Release(
    release_id="uid-1",
    model_name="tea_orders",
    version=3,
    revision="abc",
    reason="",
    data_uri="file://x",
    source_digest=made.ZERO,
    spec_digest=SPEC.digest,
    data_digest=made.ZERO,
    images_digest=made.ZERO,
    release_digest=made.ZERO,
    champion=None,
)


def concluded(checks: dict[str, Decision], required: tuple[str, ...] = ("rows", "ids")) -> Verdict:
    ran = [Check(name=name, decision=decision, reason="because") for name, decision in checks.items()]
    return verdict.conclude("validate_data", RELEASE, SPEC, required=required, checks=ran, judged={"data": made.ZERO})


GOOD = concluded({"rows": "pass", "ids": "pass"})
ENVELOPE = verdict.sign(GOOD, made.KEY)
TRUSTED = [made.KEY.public_key()]


@pytest.mark.parametrize(
    ("checks", "decision"),
    [
        ({"rows": "pass", "ids": "pass"}, "pass"),
        ({"rows": "pass", "ids": "pass", "more": "pass"}, "pass"),
        ({}, "inconclusive"),
        ({"rows": "pass"}, "inconclusive"),
        ({"rows": "pass", "more": "pass"}, "inconclusive"),
        ({"rows": "pass", "ids": "inconclusive"}, "inconclusive"),
        ({"rows": "pass", "ids": "pass", "more": "inconclusive"}, "inconclusive"),
        ({"rows": "pass", "ids": "fail"}, "fail"),
        ({"rows": "pass", "ids": "pass", "more": "fail"}, "fail"),
        ({"rows": "fail"}, "fail"),
        ({"rows": "inconclusive", "ids": "fail"}, "fail"),
    ],
)
def test_the_decision_follows_from_the_checks(checks: dict[str, Decision], decision: Decision) -> None:
    assert concluded(checks).decision == decision


@given(
    st.dictionaries(st.sampled_from(["rows", "ids", "more"]), st.sampled_from(["pass", "fail", "inconclusive"])),
    st.sampled_from(["pass", "fail", "inconclusive"]),
)
def test_no_other_decision_can_be_written_down(checks: dict[str, Decision], claim: Decision) -> None:
    honest = concluded(checks)
    claimed = {**honest.model_dump(mode="json"), "decision": claim}
    if claim == honest.decision:
        assert Verdict.model_validate_json(json.dumps(claimed)) == honest
    else:
        with pytest.raises(ValidationError, match="its checks say"):
            Verdict.model_validate_json(json.dumps(claimed))


@given(st.dictionaries(st.sampled_from(["rows", "ids", "more"]), st.sampled_from(["pass", "fail", "inconclusive"])))
def test_a_verdict_has_reasons_exactly_when_it_is_no_pass(checks: dict[str, Decision]) -> None:
    found = concluded(checks)
    assert bool(found.reasons) == (found.decision != "pass")


@pytest.mark.parametrize(
    "broken",
    [
        {"required": []},
        {"judged": {}},
        {"judged": {"data": "sha256:short"}},
        {"checks": [{"name": "rows", "decision": "pass", "reason": "x"}] * 2},
        {"checks": [{"name": "rows", "decision": "pass", "reason": ""}]},
        {"checks": [{"name": "rows", "decision": "maybe", "reason": "x"}]},
        {"gate": "another"},
        {"version": 0},
        {"version": "3"},
        {"model_name": "../x"},
        {"more": 1},
    ],
)
def test_a_verdict_that_is_malformed_is_none(broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Verdict.model_validate_json(json.dumps({**GOOD.model_dump(mode="json"), **broken}))


def test_without_a_required_check_nothing_can_be_concluded() -> None:
    with pytest.raises(ValidationError):
        concluded({"rows": "pass"}, required=())


def test_what_is_signed_verifies_and_comes_back_the_same() -> None:
    assert verdict.verify(ENVELOPE, TRUSTED) == GOOD
    assert verdict.sign(GOOD, made.KEY) == ENVELOPE


def test_the_statement_names_what_was_judged_as_in_toto_wants_it() -> None:
    statement = json.loads(base64.b64decode(json.loads(ENVELOPE)["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [{"name": "data", "digest": {"sha256": "0" * 64}}]


def test_any_one_of_the_trusted_keys_is_enough() -> None:
    other = Ed25519PrivateKey.generate().public_key()
    assert verdict.verify(ENVELOPE, [other, *TRUSTED]) == GOOD


def with_payload(change: Callable[[dict[str, Any]], object]) -> bytes:
    outer = json.loads(ENVELOPE)
    statement = json.loads(base64.b64decode(outer["payload"]))
    change(statement)
    return json.dumps({**outer, "payload": base64.b64encode(json.dumps(statement).encode()).decode()}).encode()


def with_outer(**changed: Any) -> bytes:
    return json.dumps({**json.loads(ENVELOPE), **changed}).encode()


def signature(**changed: Any) -> dict[str, Any]:
    return {**json.loads(ENVELOPE)["signatures"][0], **changed}


FORGED = {
    "altered decision": with_payload(lambda s: s["predicate"].update(decision="fail")),
    "altered release": with_payload(lambda s: s["predicate"].update(release_id="uid-9")),
    "altered subject": with_payload(lambda s: s["subject"][0].update(name="model")),
    "reformatted payload": with_payload(lambda _: None),
    "altered signature": with_outer(signatures=[signature(sig=base64.b64encode(bytes(64)).decode())]),
    "short signature": with_outer(signatures=[signature(sig="AAAA")]),
    "no base64": with_outer(signatures=[signature(sig="%%%")]),
    "foreign key": verdict.sign(GOOD, made.FOREIGN_KEY),
    "foreign key under our name": with_outer(
        signatures=[signature(sig=json.loads(verdict.sign(GOOD, made.FOREIGN_KEY))["signatures"][0]["sig"])]
    ),
    "unsigned": with_outer(signatures=[]),
    "no signatures at all": json.dumps({k: v for k, v in json.loads(ENVELOPE).items() if k != "signatures"}).encode(),
    "another payload type": with_outer(payloadType="application/json"),
    "payload type that is no text": with_outer(payloadType=["x"]),
    "signatures that are no list": with_outer(signatures=7),
    "key id that is no text": with_outer(signatures=[signature(keyid=[1])]),
    "key id that is a mapping": with_outer(signatures=[signature(keyid={})]),
    "payload that is no text": with_outer(payload=7),
    "sig that is no text": with_outer(signatures=[signature(sig=7)]),
    "no JSON": b"pass",
    "no UTF-8": b"\xff\xfe",
    "empty": b"",
    "a list": b"[]",
    "null": b"null",
    "nested too deep": b"[" * 100_000,
    "truncated": ENVELOPE[:-10],
    "a bare verdict": GOOD.model_dump_json().encode(),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_verdict_is_refused(forgery: str) -> None:
    with pytest.raises(IntegrityError):
        verdict.verify(FORGED[forgery], TRUSTED)


def test_with_no_trusted_key_nothing_is_believed() -> None:
    with pytest.raises(IntegrityError, match="no valid signature"):
        verdict.verify(ENVELOPE, [])


@pytest.mark.parametrize("predicate", [None, [], {}, {"decision": "pass"}, "pass"])
def test_a_signed_statement_that_is_no_verdict_is_refused(predicate: Any) -> None:
    payload = json.dumps({"predicate": predicate}).encode()
    signed = made.KEY.sign(verdict._to_be_signed(payload))
    envelope = with_outer(
        payload=base64.b64encode(payload).decode(),
        signatures=[signature(sig=base64.b64encode(signed).decode())],
    )
    with pytest.raises(IntegrityError, match="no verdict"):
        verdict.verify(envelope, TRUSTED)


def test_a_signed_pass_without_its_checks_is_refused() -> None:
    forged = GOOD.model_dump(mode="json")
    forged["checks"] = forged["checks"][:1]
    statement = {
        "_type": verdict.STATEMENT_TYPE,
        "subject": [{"name": "data", "digest": {"sha256": "0" * 64}}],
        "predicateType": verdict.PREDICATE_TYPE,
        "predicate": forged,
    }
    payload = json.dumps(statement).encode()
    signed = made.KEY.sign(verdict._to_be_signed(payload))
    envelope = with_outer(
        payload=base64.b64encode(payload).decode(),
        signatures=[signature(sig=base64.b64encode(signed).decode())],
    )
    with pytest.raises(IntegrityError, match="its checks say inconclusive"):
        verdict.verify(envelope, TRUSTED)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        verdict.verify(data, TRUSTED)
