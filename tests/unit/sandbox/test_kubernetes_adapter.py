"""The Kubernetes client's errors as ours."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from seatrial.adapters import kubernetes
from seatrial.errors import Conflict, InvalidInput, StepError, Unavailable


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidInput),
        (401, InvalidInput),
        (403, InvalidInput),
        (404, InvalidInput),
        (409, Conflict),
        (415, InvalidInput),
        (422, InvalidInput),
        (429, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
        (0, Unavailable),
    ],
)
def test_a_status_is_one_of_our_errors(status: int, error: type[StepError]) -> None:
    came = client.ApiException(status=status, reason="because")
    came.body = json.dumps({"kind": "Status", "message": "the object says why"})
    found = kubernetes.translated(came, "httproutes: patch x")
    assert type(found) is error
    assert "the object says why" in str(found)


def test_a_body_that_is_no_status_is_told_cut_short() -> None:
    came = client.ApiException(status=500, reason="because")
    came.body = b"<html>" + b"x" * 10_000
    assert len(str(kubernetes.translated(came, "httproutes: get x"))) < 400


def kubeconfig(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }


def test_nobody_there_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig("http://127.0.0.1:9")))
    cluster = kubernetes.connect("seatrial", str(tmp_path / "config"))
    with pytest.raises(Unavailable, match="does not answer"):
        cluster.routes.get("x")
    with pytest.raises(Unavailable, match="does not answer"):
        cluster.services.names("x")


def test_no_way_to_a_cluster_is_the_users_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InvalidInput, match="set KUBECONFIG"):
        kubernetes.connect("seatrial", None)
    with pytest.raises(InvalidInput, match="set KUBECONFIG"):
        kubernetes.connect("seatrial", str(tmp_path / "absent"))
    with pytest.raises(InvalidInput, match="SEATRIAL_NAMESPACE, SEATRIAL_WORKFLOWS_NAMESPACE not set"):
        kubernetes.from_environment({})


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A server that has nothing, and the paths that it was asked for."""
    paths: list[str] = []

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Nothing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("workflows", "found_in"), [("seatrial", "seatrial"), (None, "seatrial-serving")])
def test_workflows_may_lie_in_a_namespace_of_their_own(
    workflows: str | None, found_in: str, asked: tuple[str, list[str]], tmp_path: Path
) -> None:
    url, paths = asked
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig(url)))
    cluster = kubernetes.connect("seatrial-serving", str(tmp_path / "config"), workflows_namespace=workflows)
    assert cluster.workflows.get("w") is None
    assert cluster.routes.get("r") is None
    assert cluster.services.get("s") is None
    assert [path.split("/")[5] for path in paths] == [found_in, "seatrial-serving", "seatrial-serving"]


def test_an_object_with_the_servers_additions_contains_ours() -> None:
    ours = {"spec": {"containers": [{"name": "a"}]}, "metadata": {"labels": {"x": "y"}}}
    theirs = {
        "spec": {"containers": [{"name": "a", "terminationPolicy": "File"}]},
        "metadata": {"labels": {"x": "y"}, "uid": "1"},
    }
    assert kubernetes.contains(theirs, ours)
    assert not kubernetes.contains(ours, theirs)
    assert not kubernetes.contains({"a": [1, 2]}, {"a": [1]})
