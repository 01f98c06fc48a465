"""An image's labels, from a layout on disk and from a registry: the same answers, and every blob by its digest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import serving_images as made

from seatrial.adapters.images import LayoutImages, RegistryImages, from_environment
from seatrial.errors import IntegrityError, InvalidInput, Unavailable
from seatrial.ports import Images

NAME = "registry.example:5000/seatrial/tea-orders"
LABELS = {"dev.seatrial.bundle": "sha256:" + "ab" * 32}


def registry(layout: Path, *, speaks: str = "https") -> RegistryImages:
    """A registry that keeps the blobs of `layout` and knows one scheme."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.scheme != speaks:
            raise httpx.ConnectError("wrong version number")
        assert request.url.path.startswith("/v2/seatrial/tea-orders/")
        assert "application/vnd.oci.image.manifest.v1+json" in request.headers["accept"]
        blob = layout / "blobs" / "sha256" / request.url.path.rpartition(":")[2]
        return httpx.Response(200, content=blob.read_bytes()) if blob.is_file() else httpx.Response(404)

    return RegistryImages(httpx.MockTransport(answer))


@pytest.fixture(params=["layout", "registry", "registry in plain text"])
def images_in(request: pytest.FixtureRequest) -> Callable[[Path], Images]:
    kinds: Mapping[str, Callable[[Path], Images]] = {
        "layout": LayoutImages,
        "registry": registry,
        "registry in plain text": lambda layout: registry(layout, speaks="http"),
    }
    return kinds[request.param]


Kept = Callable[[Path], Images]


def test_the_labels_are_those_of_the_config(images_in: Kept, tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"}, labels=LABELS)
    assert images_in(tmp_path).labels(f"{NAME}@{digest}") == LABELS


def test_an_image_without_labels_has_none(images_in: Kept, tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"})
    assert images_in(tmp_path).labels(f"{NAME}@{digest}") == {}


def test_of_an_index_the_image_for_this_platform_counts(images_in: Kept, tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"}, labels=LABELS)
    arm = made.write_image(tmp_path, {"a": b"1"}, labels={"dev.seatrial.bundle": "other"})
    entries = [
        {"digest": arm, "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": digest, "platform": {"os": "linux", "architecture": "amd64"}},
    ]
    index = made.write_blob(tmp_path, json.dumps({"schemaVersion": 2, "manifests": entries}).encode())
    assert images_in(tmp_path).labels(f"{NAME}@{index['digest']}") == LABELS


def test_an_altered_config_is_an_integrity_error(images_in: Kept, tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"}, labels=LABELS)
    manifest = json.loads(blob(tmp_path, digest).read_bytes())
    blob(tmp_path, manifest["config"]["digest"]).write_text('{"config": {"Labels": {"dev.seatrial.bundle": "mine"}}}')
    with pytest.raises(IntegrityError, match="was altered"):
        images_in(tmp_path).labels(f"{NAME}@{digest}")


def test_an_image_that_nobody_has_is_wrong_input(images_in: Kept, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        images_in(tmp_path).labels(f"{NAME}@sha256:{'0' * 64}")


@pytest.mark.parametrize("document", [b"no JSON", b"[]", b"{}", b'{"config": 3}', b'{"config": {"digest": 3}}'])
def test_what_is_no_manifest_never_gives_labels(images_in: Kept, document: bytes, tmp_path: Path) -> None:
    digest = made.write_blob(tmp_path, document)["digest"]
    with pytest.raises((IntegrityError, InvalidInput)):
        images_in(tmp_path).labels(f"{NAME}@{digest}")


@pytest.mark.parametrize("image", ["", "tea-orders", f"{NAME}:v1", f"{NAME}@sha256:abc", f"tea@sha256:{'0' * 64}"])
def test_an_image_is_named_by_its_registry_and_digest(images_in: Kept, image: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="registry/repository@sha256"):
        images_in(tmp_path).labels(image)


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_registry_that_does_not_let_us_read_gives_none(status: int) -> None:
    assert answering(lambda _: httpx.Response(status)).labels(f"{NAME}@sha256:{'0' * 64}") is None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_does_not_answer_now_is_away(status: int) -> None:
    with pytest.raises(Unavailable, match=f"answers {status}"):
        answering(lambda _: httpx.Response(status)).labels(f"{NAME}@sha256:{'0' * 64}")


@pytest.mark.parametrize("fault", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError])
def test_a_registry_that_cannot_be_reached_is_away(fault: type[httpx.TransportError]) -> None:
    def broken(_: httpx.Request) -> httpx.Response:
        raise fault("gone")

    with pytest.raises(Unavailable, match="does not answer: gone"):
        answering(broken).labels(f"{NAME}@sha256:{'0' * 64}")


def test_a_blob_without_end_is_not_read_to_its_end() -> None:
    with pytest.raises(IntegrityError, match="gives more than"):
        answering(lambda _: httpx.Response(200, content=bytes(5 << 20))).labels(f"{NAME}@sha256:{'0' * 64}")


def test_the_environment_names_the_layout_or_leaves_it_to_the_image(tmp_path: Path) -> None:
    assert isinstance(from_environment({"SEATRIAL_IMAGES": str(tmp_path)}), LayoutImages)
    assert isinstance(from_environment({}), RegistryImages)


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> RegistryImages:
    return RegistryImages(httpx.MockTransport(answer))


def blob(layout: Path, digest: Any) -> Path:
    return layout / "blobs" / "sha256" / str(digest).removeprefix("sha256:")
