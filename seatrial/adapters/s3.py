"""`Store` over S3 or anything that speaks it, AWS or SeaweedFS alike.

A write-once store stands and falls with `If-None-Match: *`. Some servers ignore it and overwrite, so the first
write of every `S3Store` asks the server to refuse one, and a server that does not is not used.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
from botocore import exceptions
from botocore.config import Config

from seatrial.errors import Conflict, IntegrityError, InvalidInput, StepError, Unavailable, shortened

STORE: Final = "SEATRIAL_STORE"
ENDPOINT: Final = "AWS_ENDPOINT_URL_S3"
CONNECT_S: Final = 5
READ_S: Final = 30
ATTEMPTS: Final = 4
CONFLICTS_MAX: Final = 5
"""Tries of a conditional write that another one is in the way of (409). Source: S3 PutObject, conditional writes."""
PROBE: Final = "write-once-probe"
WRITER: Final = "seatrial-writer"
"""Metadata that names one writer: a retry after a lost answer finds its own write, and takes it as its own."""

_AWAY = (
    exceptions.HTTPClientError,
    exceptions.ConnectionError,
    exceptions.IncompleteReadError,
    exceptions.CapacityNotAvailableError,
    exceptions.CredentialRetrievalError,
    exceptions.MetadataRetrievalError,
    exceptions.WaiterError,
)
_ALTERED = (exceptions.ChecksumError, exceptions.FlexibleChecksumError)


class S3Store:
    """Objects under one bucket and prefix."""

    def __init__(self, client: Any, bucket: str, prefix: str = "") -> None:  # noqa: ANN401 - boto3 makes classes
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._probed = False

    def read(self, key: str) -> bytes | None:
        """The object's content; None when there is none."""
        with _translated(f"read {self._named(key)}"):
            try:
                data: bytes = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)["Body"].read()
            except exceptions.ClientError as error:
                if _code(error) == "NoSuchKey":
                    return None
                raise
            return data

    def write(self, key: str, data: bytes) -> None:
        """Create or replace."""
        with _translated(f"write {self._named(key)}"):
            self._put(key, data)

    def write_once(self, key: str, data: bytes) -> bool:
        """Create; False, and nothing written, when the key is taken. Exactly one of many racing writers gets True."""
        if not self._probed:
            self._probe()
        return self._create(key, data)

    def keys(self, prefix: str) -> list[str]:
        """Every key that starts with `prefix`, sorted."""
        with _translated(f"list {self._named(prefix)}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            return sorted(
                entry["Key"].removeprefix(self._prefix) for page in pages for entry in page.get("Contents", [])
            )

    def _named(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"

    def _probe(self) -> None:
        """Refuse a server that overwrites."""
        if self._create(PROBE, b"1") and self._create(PROBE, b"2"):
            raise InvalidInput(
                f"the store ignores If-None-Match and overwrites: no version can be reserved on it; {STORE} and "
                f"{ENDPOINT} must name a store with conditional writes, like AWS S3 or SeaweedFS"
            )
        self._probed = True

    def _create(self, key: str, data: bytes) -> bool:
        writer = uuid.uuid4().hex
        with _translated(f"create {self._named(key)}"):
            for _ in range(CONFLICTS_MAX):
                try:
                    self._put(key, data, IfNoneMatch="*", Metadata={WRITER: writer})
                except exceptions.ClientError as error:
                    if _status(error) == 412:
                        return self._written_by(key) == writer
                    if _status(error) != 409:
                        raise
                else:
                    return True
        raise Conflict(f"the store had another write of {key} under way {CONFLICTS_MAX} times: try again")

    def _put(self, key: str, data: bytes, **more: Any) -> None:  # noqa: ANN401 - boto3's own arguments
        self._client.put_object(
            Bucket=self._bucket, Key=self._prefix + key, Body=data, ChecksumAlgorithm="SHA256", **more
        )

    def _written_by(self, key: str) -> str | None:
        found = self._client.head_object(Bucket=self._bucket, Key=self._prefix + key)["Metadata"]
        writer: str | None = found.get(WRITER)
        return writer


def from_environment(environment: Mapping[str, str] = os.environ) -> S3Store:
    """The store that SEATRIAL_STORE names, `s3://bucket[/prefix]`; credentials as boto3 finds them.

    Raises:
        InvalidInput: It names none.
    """
    place = urlsplit(environment.get(STORE, ""))
    if place.scheme != "s3" or not place.netloc or place.query or place.fragment:
        raise InvalidInput(f"{STORE} must be s3://bucket[/prefix]; got {shortened(repr(environment.get(STORE, '')))}")
    return S3Store(client(environment), place.netloc, place.path)


def client(environment: Mapping[str, str] = os.environ) -> Any:  # noqa: ANN401 - boto3 makes classes
    """A boto3 S3 client: path style and SigV4, which every server understands; bounded waits and retries."""
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
    )
    with _translated("make a client"):
        return boto3.session.Session(
            aws_access_key_id=environment.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=environment.get("AWS_SESSION_TOKEN"),
            region_name=environment.get("AWS_REGION", "us-east-1"),
        ).client("s3", endpoint_url=environment.get(ENDPOINT) or None, config=config)


def translate(error: Exception, what: str) -> StepError:
    """Botocore's error in our words.

    Args:
        error: A ClientError or another exception of botocore.
        what: What was tried, like "read releases/1.json".
    """
    said = f"the store could not {what}: {shortened(error)}"
    if isinstance(error, exceptions.ClientError):
        return _refused(error, said)
    if isinstance(error, _ALTERED):
        return IntegrityError(f"{said}; what arrived is not what was stored")
    if isinstance(error, _AWAY):
        return Unavailable(said)
    return InvalidInput(f"{said}; check {STORE}, {ENDPOINT}, AWS_REGION and the credentials")


def _refused(error: exceptions.ClientError, said: str) -> StepError:
    """By the HTTP status, which every server sets; the error codes differ from one to the next."""
    status = _status(error)
    if status in {409, 412}:
        return Conflict(said)
    if status in {408, 425, 429} or status >= 500:
        return Unavailable(said)
    if _code(error) in {"ExpiredToken", "RequestTimeTooSkewed", "RequestTimeout"}:
        return Unavailable(said)
    return InvalidInput(f"{said}; check the bucket, the credentials and their rights")


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.BotoCoreError, exceptions.ClientError) as error:
        raise translate(error, what) from error
    except OSError as error:  # a connection that breaks while the body is read
        raise Unavailable(f"the store could not {what}: {shortened(error)}") from error
    except ValueError as error:  # an endpoint that is no URL
        raise InvalidInput(f"the store could not {what}: {shortened(error)}; check {ENDPOINT}") from error


def _status(error: exceptions.ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: exceptions.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
