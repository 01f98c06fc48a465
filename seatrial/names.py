"""Names: of models, and of the Kubernetes objects made from them."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

from seatrial.errors import InvalidInput, shortened

MODEL_NAME_MAX: Final = 30
"""Characters; leaves room for the version and KServe's own suffixes within a DNS label."""

DNS_LABEL_MAX: Final = 63
"""Source: RFC 1123 section 2.1, as Kubernetes applies it to labels and Service names."""

_MODEL_NAME = re.compile(r"[a-z][a-z0-9_]*\Z", re.ASCII)


def model_name(text: str) -> str:
    """`text` itself when it names a model: `[a-z][a-z0-9_]*`, at most 30 characters.

    Raises:
        InvalidInput: It does not; the message gives the rule.
    """
    if not _MODEL_NAME.match(text) or len(text) > MODEL_NAME_MAX:
        raise InvalidInput(
            f"a model name is lower-case letters, digits and underscores, starts with a letter and has at most "
            f"{MODEL_NAME_MAX} characters, like cart_abandonment; got {shortened(repr(text))} ({len(text)} characters)"
        )
    return text


def _checked(text: str) -> str:
    try:
        return model_name(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from error


ModelName = Annotated[str, AfterValidator(_checked)]
"""A model's name as a pydantic field."""


def kebab(name: str) -> str:
    """A model's name as Kubernetes writes it: `cart_abandonment` → `cart-abandonment`."""
    return name.replace("_", "-")


def service_name(model: str, version: int, namespace: str) -> str:
    """The InferenceService of one version: `cart-abandonment-v42`.

    Raises:
        InvalidInput: KServe's label `<name>-predictor-<namespace>` would not fit a DNS label. Source: kserve#4807.
    """
    name = f"{kebab(model)}-v{version}"
    label = f"{name}-predictor-{namespace}"
    if len(label) > DNS_LABEL_MAX:
        raise InvalidInput(
            f"KServe labels pods {label!r}: {len(label)} characters, at most {DNS_LABEL_MAX} fit; "
            f"shorten the model's name or the namespace {namespace!r}"
        )
    return name


def version_of(service: str) -> int:
    """The version in an InferenceService's or its predictor Service's name; the reverse of `service_name`.

    Raises:
        InvalidInput: The name is not of our making.
    """
    match = re.fullmatch(r"[a-z0-9-]+-v([1-9][0-9]*)(?:-predictor)?", service)
    if match is None:
        raise InvalidInput(f"a service of a version is named like cart-abandonment-v42; got {shortened(service)!r}")
    return int(match.group(1))
