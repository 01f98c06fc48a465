"""What an image says of itself: its labels, from a registry over HTTP or from an OCI layout on disk.

Every blob is asked for by its digest and checked against it, so neither the registry nor the way to it has to be
trusted; that is why a registry that knows no TLS is asked in plain text.
Source: OCI distribution-spec 1.1, sections "Pulling manifests" and "Pulling blobs"; OCI image-spec 1.1, config.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import httpx

from seatrial import digests
from seatrial.errors import IntegrityError, InvalidInput, StepError, Unavailable, shortened
from seatrial.ports import Images

LAYOUT: Final = "SEATRIAL_IMAGES"
"""An OCI layout that stands for the registry: the sandbox's."""
TIMEOUT_S: Final = 15.0
BLOB_MAX_BYTES: Final = 4 << 20
"""Source: distribution-spec, a manifest may have 4 MiB; a config is not larger."""
ACCEPTED: Final = ", ".join(
    f"application/vnd.{kind}"
    for kind in (
        "oci.image.manifest.v1+json",
        "oci.image.index.v1+json",
        "docker.distribution.manifest.v2+json",
        "docker.distribution.manifest.list.v2+json",
    )
)
_IMAGE: Final = re.compile(r"(?P<host>[^/@]+)/(?P<name>[^@]+)@(?P<digest>sha256:[0-9a-f]{64})")

Kind = Literal["manifests", "blobs"]
Get = Callable[[Kind, str], bytes]
"""Kind and digest → the blob, unchecked."""


class _NotForUs(StepError):
    """The registry does not let this step read."""


class LayoutImages:
    """Images in an OCI layout on disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def labels(self, image: str) -> Mapping[str, str] | None:
        """See `ports.Images`."""
        return _labels(self._get, _parts(image)["digest"])

    def _get(self, _: Kind, digest: str) -> bytes:
        try:
            return (self._root / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()
        except FileNotFoundError as error:
            raise InvalidInput(f"{self._root} has no {digest}: was the image built here?") from error
        except OSError as error:
            raise Unavailable(f"{digest} in {self._root} cannot be read: {shortened(error)}") from error


class RegistryImages:
    """Images in any registry that lets everybody inside the cluster read."""

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._transport = transport

    def labels(self, image: str) -> Mapping[str, str] | None:
        """See `ports.Images`."""
        parts = _parts(image)
        with httpx.Client(transport=self._transport, timeout=TIMEOUT_S, follow_redirects=True) as client:

            def get(kind: Kind, digest: str) -> bytes:
                return _pulled(client, parts["host"], f"v2/{parts['name']}/{kind}/{digest}")

            try:
                return _labels(get, parts["digest"])
            except _NotForUs:
                return None


def from_environment(environment: Mapping[str, str] = os.environ) -> Images:
    """The layout that the environment names; without one, the registry that the image's name names."""
    layout = environment.get(LAYOUT, "")
    return LayoutImages(Path(layout)) if layout else RegistryImages()


def _parts(image: str) -> re.Match[str]:
    found = _IMAGE.fullmatch(image)
    if found is None:
        raise InvalidInput(f"an image is named registry/repository@sha256:<64 hex digits>; got {shortened(image)}")
    return found


def _labels(get: Get, digest: str) -> dict[str, str]:
    """Manifest → config → labels; of an index, the manifest for linux/amd64."""
    manifest = _checked(get, "manifests", digest)
    for entry in manifest.get("manifests") or ():
        platform = entry.get("platform") or {}
        if (platform.get("os", "linux"), platform.get("architecture", "amd64")) == ("linux", "amd64"):
            return _labels(get, str(entry["digest"]))
    if not isinstance(manifest.get("config"), dict):
        raise IntegrityError(f"{digest} is no image manifest")
    config = _checked(get, "blobs", str(manifest["config"].get("digest")))
    labels = (config.get("config") or {}).get("Labels") or {}
    return {str(name): str(value) for name, value in labels.items()}


def _checked(get: Get, kind: Kind, digest: str) -> dict[str, Any]:
    data = get(kind, digest)
    if digests.of_bytes(data) != digest:
        raise IntegrityError(f"{digest} was altered: what came has {digests.of_bytes(data)}")
    try:
        value = json.loads(data)
    except ValueError as error:
        raise IntegrityError(f"{digest} is no JSON document") from error
    if not isinstance(value, dict):
        raise IntegrityError(f"{digest} is no JSON object")
    return value


def _pulled(client: httpx.Client, host: str, path: str) -> bytes:
    """The body of a blob, at most `BLOB_MAX_BYTES` of it.

    Raises:
        InvalidInput: The registry does not have it.
        Unavailable: The registry does not answer, or not now.
    """
    try:
        try:
            status, body = _asked(client, f"https://{host}/{path}")
        except httpx.ConnectError:
            status, body = _asked(client, f"http://{host}/{path}")
    except httpx.HTTPError as error:
        raise Unavailable(f"the registry {host} does not answer: {shortened(error)}") from error
    if status == httpx.codes.OK:
        return body
    if status == httpx.codes.NOT_FOUND:
        raise InvalidInput(f"the registry {host} has no {path.removeprefix('v2/')}")
    if status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise Unavailable(f"the registry {host} answers {status}")
    raise _NotForUs(f"the registry {host} answers {status}")


def _asked(client: httpx.Client, url: str) -> tuple[int, bytes]:
    with client.stream("GET", url, headers={"Accept": ACCEPTED}) as answer:
        body = bytearray()
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > BLOB_MAX_BYTES:
                raise IntegrityError(f"{url} gives more than {BLOB_MAX_BYTES} bytes: that is no manifest or config")
        return answer.status_code, bytes(body)
