"""A registry on this machine that speaks plain HTTP: what a TLS client meets there is no obstacle."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import serving_images as made

from seatrial.adapters.images import RegistryImages
from seatrial.errors import Unavailable

pytestmark = pytest.mark.integration

LABELS = {"dev.seatrial.bundle": "sha256:" + "ab" * 32}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """Where the blobs of tmp_path are served."""

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            blob = tmp_path / "blobs" / "sha256" / self.path.rpartition(":")[2]
            self.send_response(200 if blob.is_file() else 404)
            self.end_headers()
            if blob.is_file():
                self.wfile.write(blob.read_bytes())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_labels_come_from_a_registry_without_tls(host: str, tmp_path: Path) -> None:
    digest = made.write_image(tmp_path, {"a": b"1"}, labels=LABELS)
    assert RegistryImages().labels(f"{host}/seatrial/tea@{digest}") == LABELS


def test_a_port_where_nobody_listens_is_a_registry_that_is_away() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1 does not answer"):
        RegistryImages().labels(f"127.0.0.1:1/seatrial/tea@sha256:{'0' * 64}")
