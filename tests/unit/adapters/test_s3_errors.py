"""Every error of botocore becomes one of ours, and says whether trying again may help."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from botocore import exceptions

from seatrial.adapters import s3
from seatrial.errors import Conflict, IntegrityError, InvalidInput, StepError, Unavailable

EXCEPTIONS = [
    kind
    for _, kind in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(kind, exceptions.BotoCoreError | exceptions.ClientError) and kind.__module__ == exceptions.__name__
]
AWAY = {
    "CapacityNotAvailableError",
    "ConnectTimeoutError",
    "ConnectionClosedError",
    "ConnectionError",
    "CredentialRetrievalError",
    "EndpointConnectionError",
    "HTTPClientError",
    "IncompleteReadError",
    "MetadataRetrievalError",
    "ProxyConnectionError",
    "ReadTimeoutError",
    "ResponseStreamingError",
    "SSLError",
    "WaiterError",
}
ALTERED = {"ChecksumError", "FlexibleChecksumError"}


def made(kind: type[Exception]) -> Exception:
    """An instance, whatever its constructor asks for."""
    error = kind.__new__(kind)
    error.args = ("what botocore says",)
    error.response = {}  # type: ignore[attr-defined]
    return error


def test_botocore_has_the_errors_that_we_think_it_has() -> None:
    assert len(EXCEPTIONS) > 60
    assert {kind.__name__ for kind in EXCEPTIONS} >= AWAY | ALTERED


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_no_error_of_botocore_is_left_untranslated(kind: type[Exception]) -> None:
    error = s3.translate(made(kind), "read a")
    assert type(error) is not StepError
    wanted = Unavailable if kind.__name__ in AWAY else IntegrityError if kind.__name__ in ALTERED else InvalidInput
    assert type(error) is wanted
    assert str(error).startswith("the store could not read a: ")


def refusal(status: int, code: str = "Some") -> exceptions.ClientError:
    response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return exceptions.ClientError(response, "PutObject")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refusal(400), InvalidInput),
        (refusal(400, "ExpiredToken"), Unavailable),
        (refusal(400, "RequestTimeout"), Unavailable),
        (refusal(403, "AccessDenied"), InvalidInput),
        (refusal(403, "RequestTimeTooSkewed"), Unavailable),
        (refusal(404, "NoSuchBucket"), InvalidInput),
        (refusal(409), Conflict),
        (refusal(412), Conflict),
        (refusal(429), Unavailable),
        (refusal(500), Unavailable),
        (refusal(503, "SlowDown"), Unavailable),
        (exceptions.ClientError({}, "PutObject"), InvalidInput),
    ],
)
def test_a_refusal_goes_by_its_status(error: exceptions.ClientError, kind: type[StepError]) -> None:
    assert type(s3.translate(error, "write a")) is kind


@pytest.mark.parametrize(
    "place", ["", "bucket", "http://bucket", "s3://", "s3:///prefix", "s3://b?x=1", "s3://b#x", "file:///tmp/x"]
)
def test_a_place_that_is_no_bucket_is_refused(place: str) -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_STORE must be"):
        s3.from_environment({s3.STORE: place})


@pytest.mark.parametrize("endpoint", ["nonsense", "127.0.0.1:80", "http://"])
def test_an_endpoint_that_is_no_url_is_the_inputs_fault(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="AWS_ENDPOINT_URL_S3"):
        s3.from_environment({s3.STORE: "s3://b", s3.ENDPOINT: endpoint}).read("a")
