"""The canary's pictures: stages apart, asked for beneath observed, the deciding line labelled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from seatrial.canary import curves
from seatrial.canary.counts import Counts
from seatrial.canary.record import Look

START = datetime(2026, 1, 1, tzinfo=UTC)
STAGES = ((0, 10), (0, 10), (1, 50), (2, 100))


def looks() -> list[Look]:
    return [
        Look(
            at=START + timedelta(seconds=place),
            stage=stage,
            weight=weight,
            elapsed_s=float(place),
            counts=Counts(canary_requests=weight, canary_errors=0, stable_requests=100 - weight, stable_errors=0),
            pass_log_e=float(place),
            fail_log_e=0.0,
            split_log_e=0.0,
            decision="hold",
            reason="a test",
        )
        for place, (stage, weight) in enumerate(STAGES)
    ]


def test_a_line_breaks_where_a_stage_ends() -> None:
    assert curves.weights(looks()).count("<polyline") == 2 * 3


def test_both_lines_and_the_evidence_that_decides_are_labelled() -> None:
    share, evidence = curves.weights(looks()), curves.evidence(looks(), 0.05)
    assert [word for word in ("asked for", "observed", ">100<") if word not in share] == []
    assert [word for word in ("for it, in this step", "against it", ">20<", "after 3 s") if word not in evidence] == []


def test_evidence_beyond_the_edges_stays_in_the_picture() -> None:
    high = [look.model_copy(update={"pass_log_e": 500.0, "fail_log_e": -500.0}) for look in looks()]
    heights = [
        float(point.split(",")[1])
        for line in curves.evidence(high, 0.05).split('points="')[1:]
        for point in line.split('"')[0].split()
    ]
    assert min(heights) == curves.TOP
    assert max(heights) == curves.TOP + curves.HEIGHT


def test_no_look_is_said_so() -> None:
    assert curves.weights([]) == "<p>There was no look.</p>"
