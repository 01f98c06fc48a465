"""The canary's rules, one by one."""

from __future__ import annotations

from datetime import timedelta
from math import exp, log

import numpy as np
import pytest
from fakes_serving import START
from hypothesis import given
from hypothesis import strategies as st

from seatrial.canary import acceptance, ceiling, noninferiority, record, regression
from seatrial.canary.answers import Tally
from seatrial.canary.checks import replay_answers
from seatrial.canary.counts import Counts, between
from seatrial.canary.judge import Evidence, begin, rule
from seatrial.canary.outage import Past
from seatrial.canary.regression import Regression
from seatrial.canary.split import Split
from seatrial.canary.stages import stages
from seatrial.errors import IntegrityError
from seatrial.ports import ArmCounts, Scrape
from seatrial.spec import Canary, CanaryStep

THRESHOLD = log(20)
PLAN = Canary(steps=(CanaryStep(weight=10, min_s=5, max_s=60), CanaryStep(weight=50, min_s=5, max_s=60)), watch_s=5)


@st.composite
def intervals(draw: st.DrawFn) -> Counts:
    stable, canary = draw(st.integers(0, 500)), draw(st.integers(0, 500))
    return Counts(
        stable_requests=stable,
        stable_errors=draw(st.integers(0, stable)),
        canary_requests=canary,
        canary_errors=draw(st.integers(0, canary)),
    )


def clean(canary: int, stable: int = 0) -> Counts:
    return Counts(stable_requests=stable, canary_requests=canary)


def scrape(seconds: float, **versions: tuple[int, int]) -> Scrape:
    counts = {int(name[1:]): ArmCounts(requests=r, errors=e) for name, (r, e) in versions.items()}
    return Scrape(at=START + timedelta(seconds=seconds), versions=counts)


def between_v1_and_v2(before: Scrape, after: Scrape) -> Counts | str:
    return between(before, after, stable=1, canary=2, interval_s=1.0)


def fed(found: Regression, seen: list[Counts]) -> Regression:
    for one in seen:
        found = found.after(one)
    return found


# Counts


def test_counts_are_what_was_added_between_two_scrapes() -> None:
    found = between_v1_and_v2(scrape(0, v1=(100, 5)), scrape(1, v1=(190, 6), v2=(10, 2), v3=(7, 7)))
    assert found == Counts(stable_requests=90, stable_errors=1, canary_requests=10, canary_errors=2)
    assert isinstance(found, Counts)
    assert found.share == 0.1


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (scrape(1, v1=(99, 5)), "reset"),
        (scrape(1, v1=(120, 4)), "reset"),
        (scrape(1, v1=(101, 9)), "reset"),
        (scrape(1), "reset"),
        (scrape(4.1, v1=(200, 5)), "gap"),
        (scrape(0, v1=(100, 5)), "clock"),
        (scrape(-5, v1=(100, 5)), "clock"),
    ],
)
def test_counts_that_cannot_be_trusted_say_why(after: Scrape, why: str) -> None:
    found = between_v1_and_v2(scrape(0, v1=(100, 5)), after)
    assert isinstance(found, str)
    assert why in found


def test_a_scrape_that_is_a_little_late_is_no_gap() -> None:
    assert between_v1_and_v2(scrape(0), scrape(3.9, v1=(10, 0))) == Counts(stable_requests=10)


def test_more_errors_than_requests_are_no_counts() -> None:
    with pytest.raises(ValueError, match="more errors than requests"):
        Counts(canary_requests=1, canary_errors=2)


# FAIL


@given(st.lists(intervals(), max_size=12))
def test_a_failure_is_absorbing(seen: list[Counts]) -> None:
    found, highest = regression.begin(1.25, looks=5), 0.0
    for one in seen:
        found = found.after(one)
        assert found.highest >= max(highest, found.log_e)
        highest = found.highest


@given(st.lists(intervals(), min_size=1, max_size=8), st.data())
def test_one_more_bad_canary_event_never_lowers_the_evidence_against_it(
    seen: list[Counts], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(seen) - 1))
    one = seen[place]
    if one.canary_errors == one.canary_requests:
        return
    worse = [*seen[:place], one.model_copy(update={"canary_errors": one.canary_errors + 1}), *seen[place + 1 :]]
    good, bad = fed(regression.begin(1.25, looks=4), seen), fed(regression.begin(1.25, looks=4), worse)
    assert bad.log_e >= good.log_e - 1e-9
    assert bad.highest >= good.highest - 1e-9


@given(st.lists(intervals(), max_size=5), st.integers(0, 400))
def test_an_interval_without_a_request_of_an_arm_says_nothing_of_the_ratio(seen: list[Counts], requests: int) -> None:
    found = fed(regression.begin(1.25, looks=4), seen)
    for one in (clean(0, requests), clean(requests, 0)):
        assert found.after(one) is found


def test_the_likelihood_ratio_is_the_one_of_the_formula() -> None:
    one = Counts(stable_requests=90, stable_errors=2, canary_requests=10, canary_errors=3)
    found = regression.begin(1.25, looks=10).after(one)

    def p(ratio: float) -> float:
        return ratio * 0.1 / (ratio * 0.1 + 0.9)

    ratios = [1.5, 2, 3, 5, 10, 30]
    logs = [3 * log(p(r) / p(1.25)) + 2 * log((1 - p(r)) / (1 - p(1.25))) for r in ratios]
    assert found.start == pytest.approx(logs)
    mean = float(np.mean(np.exp(logs)))
    assert exp(found.log_e) == pytest.approx(0.5 * mean + 0.5 * (mean / 10 + 9 / 10))


def test_after_the_planned_looks_no_restart_is_left() -> None:
    found = regression.begin(1.25, looks=2)
    for _ in range(5):
        found = found.after(Counts(stable_requests=90, canary_requests=10))
    assert exp(found.log_e) == pytest.approx(1.0)


def test_alone_the_canary_is_held_to_an_absolute_limit() -> None:
    found = regression.begin(1.25, looks=10)
    harmless = found.after_alone(Counts(canary_requests=1000, canary_errors=8), 0.01)
    harmful = found.after_alone(Counts(canary_requests=100, canary_errors=20), 0.01)
    assert harmless.highest < THRESHOLD < harmful.highest
    assert found.after_alone(Counts(stable_requests=5), 0.01) is found


# PASS


def test_zero_errors_never_pass_by_ratio() -> None:
    found = noninferiority.begin(2.0)
    for _ in range(1000):
        found = found.after(Counts(stable_requests=1000, canary_requests=1000))
    assert found.log_e == pytest.approx(0.0)


def test_equal_error_rates_pass_by_ratio() -> None:
    found = noninferiority.begin(2.0)
    for _ in range(20):
        found = found.after(Counts(stable_requests=1000, stable_errors=10, canary_requests=1000, canary_errors=10))
    assert found.log_e > THRESHOLD


def first_pass(found: ceiling.Ceiling | acceptance.Acceptance) -> int:
    requests = 0
    while found.log_e < THRESHOLD:
        found, requests = found.after(clean(1, 9)), requests + 1
    return requests


def test_about_370_clean_requests_pass_a_ceiling_of_1_percent() -> None:
    assert log(20) / -log(1 - 0.01) == pytest.approx(298, abs=0.1)
    assert first_pass(ceiling.begin(0.01)) == 310
    assert first_pass(acceptance.begin(ratio_max=10.0, harmless_rate=0.01)) == 378
    assert first_pass(acceptance.begin(ratio_max=None, harmless_rate=0.01)) == 310


def test_a_ceiling_forgives_an_error_but_takes_longer() -> None:
    found = ceiling.begin(0.01).after(Counts(canary_requests=400, canary_errors=1))
    assert found.log_e < THRESHOLD
    assert found.after(clean(600)).log_e > THRESHOLD


@given(intervals())
def test_more_errors_never_help_to_pass(one: Counts) -> None:
    if one.canary_errors == one.canary_requests:
        return
    worse = one.model_copy(update={"canary_errors": one.canary_errors + 1})
    begun = acceptance.begin(ratio_max=3.0, harmless_rate=0.01)
    assert begun.after(worse).log_e <= begun.after(one).log_e + 1e-9


# Split and outage


@pytest.mark.parametrize(("share", "wrong"), [(0.1, False), (0.105, False), (0.12, True), (0.0, True), (0.9, True)])
def test_a_split_is_wrong_when_it_is_surely_off_by_enough_to_matter(share: float, wrong: bool) -> None:  # noqa: FBT001
    requests = 20_000
    canary = round(requests * share)
    assert Split(asked=0.1).after(clean(canary, requests - canary)).wrong(3) is wrong


def test_a_split_of_few_requests_is_not_doubted() -> None:
    assert not Split(asked=0.1).wrong(1)
    assert not Split(asked=0.1).after(clean(0, 30)).wrong(1)
    assert Split(asked=0.1).after(clean(0, 300)).wrong(1)


def test_requests_shared_at_random_are_seldom_doubted() -> None:
    chance, doubted = np.random.default_rng(5), 0
    for _ in range(400):
        found = Split(asked=0.25)
        for canary in chance.binomial(50, 0.25, size=100):
            found = found.after(clean(int(canary), 50 - int(canary)))
            if found.wrong(1):
                doubted += 1
                break
    assert doubted <= 6


def test_a_surge_of_the_stable_arm_does_not_count_towards_pass_nor_as_its_past() -> None:
    past = Past().after(Counts(stable_requests=10_000, stable_errors=100))
    calm = Counts(stable_requests=1000, stable_errors=30, canary_requests=100)
    storm = Counts(stable_requests=1000, stable_errors=500, canary_requests=100, canary_errors=50)
    assert not past.surges(calm)
    assert past.surges(storm)
    assert past.after(storm) == past
    assert not past.surges(Counts(stable_requests=5, stable_errors=1))


def test_an_outage_of_both_arms_passes_nobody() -> None:
    evidence = begin(PLAN.model_copy(update={"ratio_max": (2.0,), "harmless_rate": 0.001}), champion=True)
    evidence = evidence.after(Counts(stable_requests=9000, stable_errors=9, canary_requests=1000, canary_errors=2))
    before = evidence.acceptance
    storm = Counts(stable_requests=900, stable_errors=450, canary_requests=100, canary_errors=50)
    assert evidence.surges(storm)
    assert evidence.after(storm).acceptance == before


# What follows


def after(evidence: Evidence, *seen: Counts) -> Evidence:
    for one in seen:
        evidence = evidence.after(one)
    return evidence


def test_the_last_ratio_of_the_ladder_holds_for_all_further_steps() -> None:
    steps = tuple(CanaryStep(weight=w, min_s=1, max_s=2) for w in (1, 2, 3))
    found = stages(PLAN.model_copy(update={"steps": steps, "ratio_max": (10.0, 2.0)}), champion=True)
    assert [(s.kind, s.weight, s.ratio_max) for s in found] == [
        ("step", 1, 10.0),
        ("step", 2, 2.0),
        ("step", 3, 2.0),
        ("watch", 100, None),
    ]


@given(st.floats(0, 1000))
def test_zero_requests_decide_nothing_in_any_stage(elapsed_s: float) -> None:
    for champion in (True, False):
        evidence = begin(PLAN, champion=champion)
        while True:
            empty = after(evidence, *[Counts()] * 5)
            wanted = "inconclusive" if elapsed_s >= evidence.stage.max_s else "hold"
            assert rule(empty, elapsed_s).decision == wanted
            if evidence.at == len(evidence.stages) - 1:
                break
            evidence = evidence.onward()


def test_a_step_is_not_passed_before_its_time_nor_on_the_evidence_of_the_step_before() -> None:
    evidence = after(begin(PLAN, champion=True), clean(1000, 9000))
    assert rule(evidence, 4.9).decision == "hold"
    assert rule(evidence, 5.0).decision == "pass"
    assert rule(evidence.onward(), 59.0).decision == "hold"
    assert rule(evidence.onward(), 60.0).decision == "inconclusive"


def test_evidence_against_is_carried_from_step_to_step() -> None:
    bad = Counts(stable_requests=900, stable_errors=9, canary_requests=100, canary_errors=40)
    evidence = after(begin(PLAN, champion=True), bad)
    assert rule(evidence, 1.0).decision == "fail"
    healthy = after(evidence.onward(), *[clean(5000, 5000)] * 50)
    assert rule(healthy, 10.0).decision == "fail"


def test_at_100_percent_the_limit_follows_a_stable_arm_that_is_worse_than_harmless() -> None:
    evidence = after(
        begin(PLAN, champion=True),
        *[Counts(stable_requests=9000, stable_errors=450, canary_requests=1000, canary_errors=50)] * 3,
    )
    assert evidence.limit == pytest.approx(0.1, rel=0.01)
    clean_so_far = after(begin(PLAN, champion=True), clean(1000, 9000)).onward().onward()
    assert clean_so_far.limit == 0.01
    assert begin(PLAN, champion=False).limit == 0.01


def test_a_wrong_split_is_told_before_a_pass() -> None:
    evidence = after(begin(PLAN, champion=True), clean(3000, 7000))
    found = rule(evidence, 30.0)
    assert (found.decision, "10.00%" in found.reason) == ("inconclusive", True)


# Record and answers


@given(st.lists(intervals(), max_size=4), st.text(max_size=20))
def test_reading_what_was_written_gives_the_same_record(seen: list[Counts], dropped: str) -> None:
    evidence = begin(PLAN, champion=True)
    for one in seen:
        evidence = evidence.after(one)
        look = record.look(
            evidence, rule(evidence, 1.0), one, at=START, elapsed_s=1.0, surge=False, replayed=one.requests
        )
        assert record.read(record.line(look)) == [look]
    silent = record.look(evidence, rule(evidence, 1.0), dropped, at=START, elapsed_s=1.0, surge=False, replayed=0)
    assert record.read(record.line(silent)) == [silent]


def test_a_line_that_is_none_is_an_integrity_error() -> None:
    with pytest.raises(IntegrityError, match="cannot be read"):
        record.read(b'{"kind": "look"}\n')


def test_wrong_answers_fail_only_when_confirmed() -> None:
    tally = Tally(answered={2: 100}, right=99, wrong=1, suspects=("r1",))
    assert replay_answers(tally, None).decision == "pass"
    failed = replay_answers(tally, "r1")
    assert failed.decision == "fail"
    assert "request r1 got no right answer" in failed.reason


def test_a_candidate_that_refuses_is_not_said_to_answer_wrong() -> None:
    gone = replay_answers(Tally(answered={1: 90}, failed=7, lost=3), "r1")
    assert gone.reason.endswith("it answered 0 wrong, 7 were refused, 3 lost")
