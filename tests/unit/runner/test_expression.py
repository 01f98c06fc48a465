from __future__ import annotations

from typing import Any

import pytest

from seatrial.app.runner import expression, variables
from seatrial.errors import InvalidInput

FACTS: dict[str, Any] = {
    "yes": True,
    "no": False,
    "a-b.Succeeded": True,
    "n": "75",
    "text": "Pod was Evicted",
    "one": 1.0,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("yes", True),
        ("!yes", False),
        ("!no && yes", True),
        ("no || yes && no", False),
        ("(no || yes) && !no", True),
        ("!(no || yes)", False),
        ("a-b.Succeeded", True),
        ("a-b.Succeeded && yes", True),
        ("'pass' == 'pass'", True),
        ("'' == 'pass'", False),
        ("'' != 'pass'", True),
        ('"it\'s" == "it\'s"', True),
        (r"'it\'s' == " + '"it\'s"', True),
        ("n in ['75', '137']", True),
        ("n in ['137']", False),
        ("n in []", False),
        ("n == 75", False),
        ("one == 1", True),
        ("one != 1.5", True),
        ("text matches '(?i)evicted|preempt'", True),
        ("text matches '^Evicted'", False),
        ("true && !false", True),
        ("trueish || yes", True),
    ],
)
def test_it_gives_what_argo_gives(text: str, *, holds: bool) -> None:
    assert expression.is_true(text, lambda name: FACTS.get(name, False)) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a ==",
        "a = b",
        "'open",
        "a && ",
        "f(x)",
        "a.b.",
        "a ? b : c",
        "a + b",
        "[yes]",
        "{{x}} == 'a'",
        "a; b",
        "a in b",
    ],
)
def test_what_is_not_rendered_is_not_understood(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not understood"):
        expression.is_true(text, FACTS.__getitem__)


@pytest.mark.parametrize("text", ["'pass'", "n", "n && yes", "!n", "75"])
def test_a_text_is_neither_true_nor_false(text: str) -> None:
    with pytest.raises(InvalidInput, match="true"):
        expression.is_true(text, FACTS.__getitem__)


def test_its_names_are_those_that_it_asks_for() -> None:
    assert expression.names("a.Succeeded && (b-c.Failed || !a.Succeeded)") == {"a.Succeeded", "b-c.Failed"}
    assert expression.names("single") == {"single"}


def test_references_are_replaced_once() -> None:
    values = {"a.b": "{{c}}", "c": "no"}
    assert variables.replaced("x {{ a.b }} {{c}}", values.__getitem__) == "x {{c}} no"
    assert variables.references("{{a.b}}@{{ c }}") == ["a.b", "c"]


@pytest.mark.parametrize("text", ["{{=1+1}}", "{{a b}}", "{{}}", "{{a..b}}"])
def test_a_reference_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a plain name"):
        variables.references(text)
