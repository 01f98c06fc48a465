"""The store adapter against a real S3 server, SeaweedFS; the same suite runs over the store in memory."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import s3_server
from fakes_store import MemoryStore

from seatrial import bundle
from seatrial.adapters import s3, trees
from seatrial.adapters.s3 import S3Store
from seatrial.errors import Conflict, IntegrityError, InvalidInput, Unavailable
from seatrial.ports import Store

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a SeaweedFS that runs for this module."""
    with s3_server.serving(tmp_path_factory.mktemp("weed")) as environment:
        yield environment


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest) -> Store:
    """A store with a prefix of its own."""
    if request.param == "memory":
        return MemoryStore()
    environment = request.getfixturevalue("server")
    return s3.from_environment({**environment, s3.STORE: f"s3://seatrial/{time.monotonic_ns()}"})


def test_what_is_written_is_read_and_what_is_not_is_none(store: Store) -> None:
    assert store.read("a/b.json") is None
    store.write("a/b.json", b"\x00one")
    assert store.read("a/b.json") == b"\x00one"
    store.write("a/b.json", b"")
    assert store.read("a/b.json") == b""


def test_a_key_is_created_once(store: Store) -> None:
    assert store.write_once("versions/00000001.json", b"first")
    assert not store.write_once("versions/00000001.json", b"second")
    assert not store.write_once("versions/00000001.json", b"first")
    assert store.read("versions/00000001.json") == b"first"


def test_of_many_racing_creators_one_wins(store: Store) -> None:
    for attempt in range(3):
        barrier = threading.Barrier(8)
        won: list[int] = []

        def race(me: int, key: str, barrier: threading.Barrier, won: list[int]) -> None:
            barrier.wait()
            if store.write_once(key, b"%d" % me):
                won.append(me)

        key = f"race/{attempt}"
        threads = [threading.Thread(target=race, args=(me, key, barrier, won)) for me in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert store.read(key) == b"%d" % won[0]


def test_keys_are_those_below_a_prefix_sorted(store: Store) -> None:
    for name in ("m/ledger/00000002.json", "m/ledger/00000001.json", "m/ledger2/1.json", "n/x.json"):
        store.write(name, b"1")
    assert store.keys("m/ledger/") == ["m/ledger/00000001.json", "m/ledger/00000002.json"]
    assert store.keys("m/ledger") == [*store.keys("m/ledger/"), "m/ledger2/1.json"]
    assert store.keys("nobody/") == []


def bundle_in(root: Path) -> Path:
    (root / "model").mkdir(parents=True)
    (root / "config.pbtxt").write_bytes(b"config")
    (root / "model" / "model.onnx").write_bytes(os.urandom(300_000))
    bundle.seal(root, "tea_orders")
    return root


def test_a_bundle_goes_and_comes_back_whole(store: Store, tmp_path: Path) -> None:
    sealed = trees.put_bundle(store, bundle_in(tmp_path / "b"))
    assert trees.put_bundle(store, tmp_path / "b") == sealed
    assert trees.fetch_bundle(store, sealed.digest, tmp_path / "fetched") == sealed
    assert (tmp_path / "fetched/model/model.onnx").read_bytes() == (tmp_path / "b/model/model.onnx").read_bytes()


def test_a_bundle_that_was_altered_in_the_store_is_refused(store: Store, tmp_path: Path) -> None:
    sealed = trees.put_bundle(store, bundle_in(tmp_path / "b"))
    store.write(f"{sealed.prefix}/config.pbtxt", b"Config")
    with pytest.raises(IntegrityError, match=r"config\.pbtxt must be"):
        trees.fetch_bundle(store, sealed.digest, tmp_path / "fetched")
    with pytest.raises(IntegrityError, match="written once"):
        trees.put_bundle(store, tmp_path / "b")


def test_a_bundle_without_its_manifest_is_not_there(store: Store, tmp_path: Path) -> None:
    sealed = bundle.read(bundle_in(tmp_path / "b"))
    store.write(f"{sealed.prefix}/model/model.onnx", b"half")
    with pytest.raises(IntegrityError, match="holds no whole bundle"):
        trees.fetch_bundle(store, sealed.digest, tmp_path / "fetched")


def test_more_keys_than_one_page_are_all_listed(server: dict[str, str]) -> None:
    client = s3.client(server)
    for number in range(1005):
        client.put_object(Bucket="seatrial", Key=f"many/{number:05d}", Body=b"")
    client.close()
    assert len(s3.from_environment(server).keys("many/")) == 1005


def test_a_bucket_that_is_not_there_is_the_inputs_fault(server: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="check the bucket"):
        s3.from_environment({**server, s3.STORE: "s3://nowhere"}).keys("a")


def test_credentials_that_are_wrong_are_the_inputs_fault(server: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="credentials") as caught:
        s3.from_environment({**server, "AWS_SECRET_ACCESS_KEY": "wrong-secret"}).write("a", b"1")
    assert "wrong-secret" not in str(caught.value)


class Bucket(BaseHTTPRequestHandler):
    """Just enough S3 for conditional writes, and the two ways in which they go wrong."""

    protocol_version = "HTTP/1.1"  # answers "Expect: 100-continue", for which boto3 would wait a second
    honours_conditions = True
    loses_answers = 0
    conflicts = 0
    objects: ClassVar[dict[str, tuple[bytes, str]]] = {}

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        conditional = self.headers.get("if-none-match") == "*"
        if conditional and type(self).conflicts:
            type(self).conflicts -= 1
            return self._say(409, b"<Error><Code>ConditionalRequestConflict</Code></Error>")
        if conditional and self.honours_conditions and self.path in self.objects:
            return self._say(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        self.objects[self.path] = (data, self.headers.get(f"x-amz-meta-{s3.WRITER}", ""))
        if type(self).loses_answers:
            type(self).loses_answers -= 1
            return self._say(500, b"<Error><Code>InternalError</Code></Error>")
        return self._say(200, b"")

    def do_HEAD(self) -> None:
        found = self.objects.get(self.path)
        self._say(404 if found is None else 200, b"", writer="" if found is None else found[1])

    def _say(self, status: int, body: bytes, *, writer: str = "") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if writer:
            self.send_header(f"x-amz-meta-{s3.WRITER}", writer)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def odd_server() -> Iterator[tuple[type[Bucket], S3Store]]:
    """A server of its own for one test, to be made odd, and a store on it."""
    handler = type("Odd", (Bucket,), {"objects": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        yield handler, s3.from_environment({s3.STORE: "s3://bucket/p", s3.ENDPOINT: endpoint, **s3_server.CREDENTIALS})
        server.shutdown()


def test_a_server_that_overwrites_is_refused(odd_server: tuple[type[Bucket], S3Store]) -> None:
    handler, store = odd_server
    handler.honours_conditions = False
    with pytest.raises(InvalidInput, match="ignores If-None-Match"):
        store.write_once("versions/1.json", b"1")
    assert not any("versions" in path for path in handler.objects)


def test_a_write_whose_answer_was_lost_is_known_as_ones_own(odd_server: tuple[type[Bucket], S3Store]) -> None:
    handler, store = odd_server
    assert store.write_once("first", b"1")
    handler.loses_answers = 1
    assert store.write_once("versions/1.json", b"mine")
    assert not store.write_once("versions/1.json", b"mine")


def test_a_conflict_is_tried_again_and_not_for_ever(odd_server: tuple[type[Bucket], S3Store]) -> None:
    handler, store = odd_server
    handler.conflicts = s3.CONFLICTS_MAX - 1
    assert store.write_once("versions/1.json", b"1")
    handler.conflicts = 10**6
    with pytest.raises(Conflict, match="try again"):
        store.write_once("versions/2.json", b"1")


def test_a_server_that_is_away_can_be_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    store = s3.from_environment({s3.STORE: "s3://b", s3.ENDPOINT: f"http://127.0.0.1:{port}", **s3_server.CREDENTIALS})
    with pytest.raises(Unavailable, match="could not read s3://b/a"):
        store.read("a")
