"""Names of models, and of what is made from them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial import names
from seatrial.errors import InvalidInput


@pytest.mark.parametrize("name", ["a", "cart_abandonment", "a1", "a_", "a" * 30, "x9_9"])
def test_a_good_name_is_itself(name: str) -> None:
    assert names.model_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "A b",
        "A",
        "$(id)",
        "`id`",
        "{{x}}",
        "{{workflow.uid}}",
        "a" * 31,
        "1a",
        "_a",
        "a-b",
        "a.b",
        "a/b",
        "a b",
        " a",
        "a ",
        "a\n",
        "a\nb",
        "\x00a",
        "é",
        "aé",
        "а",
        "a²",
        "a٣",
        "%61",
        "-rf",
    ],
)
def test_a_bad_name_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(InvalidInput, match="lower-case letters") as caught:
        names.model_name(name)
    assert "\n" not in str(caught.value)


def test_a_very_long_name_makes_no_long_message() -> None:
    with pytest.raises(InvalidInput) as caught:
        names.model_name("a" * 1_000_000)
    assert len(str(caught.value)) < 600


good = st.from_regex(r"[a-z][a-z0-9_]{0,29}", fullmatch=True)


@given(good, st.integers(1, 10**6))
def test_a_services_name_gives_its_version_back_and_fits_a_dns_label(model: str, version: int) -> None:
    service = names.service_name(model, version, "seatrial")
    assert names.version_of(service) == version
    assert names.version_of(f"{service}-predictor") == version
    assert len(f"{service}-predictor-seatrial") <= names.DNS_LABEL_MAX


@given(st.text())
def test_what_is_accepted_is_safe_in_paths_labels_and_shells(text: str) -> None:
    try:
        names.model_name(text)
    except InvalidInput:
        return
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,29}", text)


def test_a_service_that_kserve_cannot_label_is_refused() -> None:
    with pytest.raises(InvalidInput, match="shorten the model's name or the namespace"):
        names.service_name("a" * 30, 1, "a-very-long-namespace-name")


@pytest.mark.parametrize("service", ["", "v1", "a-v", "a-v0", "a-v01", "a-vx", "A-v1", "a-v1-predictor-x", "a-v1\n"])
def test_a_service_of_others_has_no_version(service: str) -> None:
    with pytest.raises(InvalidInput):
        names.version_of(service)
