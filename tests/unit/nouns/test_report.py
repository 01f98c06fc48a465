"""A report says the decision first, escapes what others wrote, and rounds for people."""

from __future__ import annotations

from typing import Any

import fakes_release as made
import pytest

from seatrial import report, verdict
from seatrial.release import Release
from seatrial.spec import Decision
from seatrial.verdict import Check

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


def page(decision: Decision, *, required: tuple[str, ...] = ("rows",), reason: str = "because", **facts: Any) -> str:
    checks = [
        Check(name="fine", decision="pass", reason="of course"),
        Check(name="rows", decision=decision, reason=reason, evidence=facts),
    ]
    concluded = verdict.conclude(
        "validate_data", RELEASE, SPEC, required=required, checks=checks, judged={"data": made.ZERO}
    )
    return report.page(concluded, sections=[("Pictures", "<svg/>")])


@pytest.mark.parametrize(
    ("decision", "title", "why"),
    [
        ("pass", "tea_orders v3: validate_data passed", "all 2 checks passed"),
        ("fail", "tea_orders v3: validate_data failed", "rows: because"),
        ("inconclusive", "tea_orders v3: validate_data could not be decided", "rows: because"),
    ],
)
def test_the_decision_and_why_come_before_everything_else(decision: Decision, title: str, why: str) -> None:
    assert f"<h1 class={decision}>{title}</h1><p>{why}</p>\n<h2>Checks</h2>" in page(decision)


def test_what_did_not_pass_comes_first() -> None:
    text = page("fail")
    assert text.index("<td>rows") < text.index("<td>fine")


def test_a_check_that_never_ran_is_named() -> None:
    assert "<td>ids<td class=inconclusive>never ran" in page("pass", required=("rows", "ids"))


def test_what_others_wrote_is_shown_as_text() -> None:
    text = page("fail", reason="<script>alert(1)</script>", note="<b>&")
    assert "<script>" not in text
    assert "note: &lt;b&gt;&amp;" in text


@pytest.mark.parametrize(
    ("value", "shown"), [(0.123456, "0.1235"), (5678.28, "5678"), (4247, "4247"), (made.ZERO, "0" * 12), (None, "None")]
)
def test_four_digits_are_enough_to_read(value: Any, shown: str) -> None:
    assert f"<span>the_fact: {shown}</span>".replace("_", " ") in page("pass", the_fact=value)


def test_the_page_needs_no_network_and_no_script() -> None:
    text = page("pass")
    assert not [word for word in ("<script", "http:", "https:", "url(", "@import") if word in text]
