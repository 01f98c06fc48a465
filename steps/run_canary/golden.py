"""Golden requests, by header: the candidate must answer each one right, at the second try at the latest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.errors import Unavailable
from seatrial.ports import Answer, Clock, Predictions
from seatrial.route import read_back
from seatrial.route.state import CANARY_ARM
from seatrial.triton import requests
from seatrial.triton.requests import Example
from seatrial.verdict import Check, Fact
from steps.run_canary.contract import Inputs

REACHED: int = 3
"""Answers in a row by header that show that the gateway knows the candidate."""


def check(inputs: Inputs, examples: Sequence[Example], predictions: Predictions, clock: Clock) -> Check:
    """The check `golden_answers`; a request that is answered wrong twice fails, one that stays lost decides nothing."""
    if not examples:
        return Check(name="golden_answers", decision="inconclusive", reason="the papers hold no golden request")
    try:
        body = requests.body(examples[0])
        expected = {inputs.version}
        read_back(predictions, clock, inputs.model_name, body, expected=expected, arm=CANARY_ARM, consecutive=REACHED)
    except Unavailable as error:
        return Check(name="golden_answers", decision="inconclusive", reason=f"by header: {error}")
    lost = 0
    for example in examples:
        wrong = twice_wrong(inputs, example, predictions)
        if wrong is not None and wrong.status:
            reason = f"request {example.id} was answered wrong twice: {example.fault(wrong, inputs.version)}"
            return Check(name="golden_answers", decision="fail", reason=reason, evidence={"requests": len(examples)})
        lost += wrong is not None
    evidence: dict[str, Fact] = {"requests": len(examples), "lost": lost}
    if lost:
        reason = f"{lost} of {len(examples)} golden requests got no answer twice"
        return Check(name="golden_answers", decision="inconclusive", reason=reason, evidence=evidence)
    reason = f"all {len(examples)} golden requests were answered right by v{inputs.version}, by header"
    return Check(name="golden_answers", decision="pass", reason=reason, evidence=evidence)


def confirmed(inputs: Inputs, suspects: Iterable[Example], predictions: Predictions) -> Example | None:
    """The first of the suspects that the candidate answers wrong twice more; None: all were a moment's trouble.

    A candidate that gives no answer is not asked on: counts show that, and nobody should wait for it here.
    """
    for example in suspects:
        wrong = twice_wrong(inputs, example, predictions)
        if wrong is not None:
            return example if wrong.status else None
    return None


def twice_wrong(inputs: Inputs, example: Example, predictions: Predictions) -> Answer | None:
    """The second wrong answer, asked by header; None: it was right at the first or second try."""
    answer = None
    for _ in range(2):
        answer = predictions.ask(inputs.model_name, requests.body(example), arm=CANARY_ARM)
        if not example.fault(answer, inputs.version):
            return None
    return answer
