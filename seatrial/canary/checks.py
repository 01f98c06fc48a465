"""The checks of the canary's verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Final

from seatrial.canary.answers import Tally
from seatrial.canary.judge import Evidence, Ruling
from seatrial.canary.record import Look
from seatrial.verdict import Check, Fact

E_MAX: Final = 1e12
"""Where an e-value is cut off for people."""
CLIENTS_SHARE_MIN: Final = 0.02
"""Requests that our replay did not send count as clients' own from this share on; less is what is under way."""


def errors(evidence: Evidence, ruling: Ruling, looks: Sequence[Look]) -> Check:
    """What the counts say; a ruling to hold on is no decision."""
    seen = evidence.total
    facts: dict[str, Fact] = {
        "canary_requests": seen.canary_requests,
        "canary_errors": seen.canary_errors,
        "stable_requests": seen.stable_requests,
        "stable_errors": seen.stable_errors,
        "e_value_against": e_value(evidence.regression.highest),
        "e_value_for": e_value(evidence.acceptance.log_e),
        "threshold": 1 / evidence.plan.alpha,
        "looks": len(looks),
        "looks_not_counted": sum(look.counts is None for look in looks),
        "sources": sources(looks, by_header=evidence.stage.kind == "header"),
    }
    decision = "inconclusive" if ruling.decision == "hold" else ruling.decision
    return Check(name="errors", decision=decision, reason=ruling.reason, evidence=facts)


def sources(looks: Sequence[Look], *, by_header: bool) -> str:
    """Whose requests the counts are made of."""
    counted = [look for look in looks if look.counts is not None]
    requests = sum(look.counts.requests for look in counted if look.counts is not None)
    replayed = sum(look.replayed for look in counted)
    if not requests:
        return "nobody"
    if by_header:
        return "replay by header"
    clients = requests - replayed > CLIENTS_SHARE_MIN * requests
    return " and ".join([*(["clients"] if clients else []), *(["replay"] if replayed else [])]) or "clients"


def split(evidence: Evidence, looks: Sequence[Look]) -> Check:
    """Whether each step's requests were shared as asked."""
    facts: dict[str, Fact] = {}
    for index, stage in enumerate(evidence.stages):
        counts = [look.counts for look in looks if look.stage == index and look.counts is not None]
        requests = sum(one.requests for one in counts)
        if stage.kind == "step" and requests:
            facts[f"share_at_{stage.weight}"] = round(sum(one.canary_requests for one in counts) / requests, 5)
            facts[f"requests_at_{stage.weight}"] = requests
    if evidence.split is not None and evidence.split.wrong(sum(stage.kind == "step" for stage in evidence.stages)):
        reason = f"{evidence.split.share:.2%} of {evidence.split.requests} requests went to the canary"
        return Check(
            name="split",
            decision="inconclusive",
            reason=f"{reason}, {evidence.split.asked:.2%} were asked for: the counts cannot be trusted",
            evidence=facts,
        )
    if not facts:
        return Check(name="split", decision="inconclusive", reason="no request was counted, so none was shared")
    return Check(name="split", decision="pass", reason="the gateway shared requests as it was asked to", evidence=facts)


def replay_answers(tally: Tally, confirmed: str | None) -> Check:
    """Whether the candidate answered replayed requests as it should; one wrong answer twice fails.

    Args:
        tally: Of the whole replay.
        confirmed: The id of a request that it was asked again and again, and never answered right; None: there is none.
    """
    facts: dict[str, Fact] = {"right": tally.right, "wrong": tally.wrong, "failed": tally.failed, "lost": tally.lost}
    if confirmed is not None:
        reason = (
            f"request {confirmed} got no right answer from the candidate, asked twice more; of the replayed requests "
            f"it answered {tally.wrong} wrong, {tally.failed} were refused, {tally.lost} lost"
        )
        return Check(name="replay_answers", decision="fail", reason=reason, evidence=facts)
    reason = f"{tally.right} of {tally.right + tally.wrong} answers of the candidate were right, none wrong twice"
    return Check(name="replay_answers", decision="pass", reason=reason, evidence=facts)


def e_value(log_e: float) -> float:
    """An e-value as people read it."""
    return min(exp(min(log_e, 700.0)), E_MAX)
