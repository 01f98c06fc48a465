"""A Kubernetes API with an installed seatrial, as far as commands ask for it; every object lies in one dict."""

from __future__ import annotations

import base64
import copy
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from fakes_serving import merged

from seatrial.ports import Manifest

ROOT = Path(__file__).resolve().parents[1]
SERVING, WORKFLOWS = "seatrial-serving", "seatrial"
CORE = f"/api/v1/namespaces/{WORKFLOWS}"
ARGO = f"/apis/argoproj.io/v1alpha1/namespaces/{WORKFLOWS}"
ROUTES = f"/apis/gateway.networking.k8s.io/v1/namespaces/{SERVING}/httproutes"
SERVICES = f"/apis/serving.kserve.io/v1beta1/namespaces/{SERVING}/inferenceservices"
UID = "bf04435f-2fc8-49b7-a326-c47516015b8{}"


@dataclass
class ApiServer:
    """Objects by path; `forbidden` paths answer 403, `away` answers are 503."""

    kubeconfig: Path
    objects: dict[str, Manifest] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    away: int = 0
    goes_on: Callable[[Manifest], None] = lambda _: None
    """Called with a Workflow each time it is read: the controller."""
    created: list[Manifest] = field(default_factory=list)
    versions: Iterator[int] = field(default_factory=lambda: itertools.count(100))

    def put(self, path: str, manifest: Manifest) -> None:
        manifest = copy.deepcopy(manifest)
        manifest.setdefault("metadata", {})["resourceVersion"] = str(next(self.versions))
        self.objects[path] = manifest

    def under(self, path: str, selector: str) -> list[Manifest]:
        key, _, wanted = selector.replace("!=", "=!").partition("=")
        found = [o for place, o in sorted(self.objects.items()) if place.rpartition("/")[0] == path]
        labels = [(o, o["metadata"].get("labels", {}).get(key)) for o in found]
        if wanted.startswith("!"):
            return [o for o, label in labels if label != wanted[1:]]
        return [o for o, label in labels if not selector or label == wanted]

    def answer(self, method: str, path: str, selector: str, body: Any) -> tuple[int, Any]:
        if self.away:
            self.away -= 1
            return 503, {"message": "the API is away"}
        if path in self.forbidden:
            return 403, {"message": f"{path.rpartition('/')[2]} is forbidden"}
        if method == "POST":
            return self._created(path, body)
        if path in self.objects:
            return self._item(method, path, body)
        if method == "GET" and path.rpartition("/")[2] in {"workflows", "httproutes", "inferenceservices"}:
            return 200, {"items": self.under(path, selector)}
        return 404, {"message": "not found"}

    def _item(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        found = self.objects[path]
        if method == "PATCH":
            if body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
                return 409, {"message": "the object has been modified"}
            self.put(path, merged(found, body))
        elif method == "DELETE":
            return 200, self.objects.pop(path)
        elif path.startswith(f"{ARGO}/workflows/"):
            self.goes_on(found)
        return 200, self.objects[path]

    def _created(self, path: str, body: Any) -> tuple[int, Any]:
        self.created.append(body)
        metadata = body["metadata"]
        metadata.setdefault("name", f"{metadata.get('generateName')}x{len(self.created)}")
        metadata["uid"] = UID.format(len(self.created))
        metadata["creationTimestamp"] = "2026-01-01T12:00:00Z"
        self.put(f"{path}/{metadata['name']}", body)
        return 201, self.objects[f"{path}/{metadata['name']}"]


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """It listens inside the block, and a kubeconfig with the contexts `staging` and `other` leads to it."""
    server = ApiServer(folder / "kubeconfig")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            url = urlsplit(self.path)
            selector = parse_qs(url.query).get("labelSelector", [""])[0]
            status, answer = server.answer(self.command, url.path, selector, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        listening.block_on_close = False
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        server.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(f"http://127.0.0.1:{listening.server_port}")))
        yield server
        listening.shutdown()
        thread.join()


def install(server: ApiServer, *, gateway: str = "http://127.0.0.1:9", credentials: bool = False) -> None:
    """The ConfigMaps and the template of an installed seatrial."""
    settings = {
        "seatrial-cluster": {"SEATRIAL_NAMESPACE": SERVING, "SEATRIAL_WORKFLOWS_NAMESPACE": WORKFLOWS},
        "seatrial-store": {"SEATRIAL_STORE": "s3://seatrial", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"},
        "seatrial-gateway": {
            "SEATRIAL_GATEWAY_URL": gateway,
            "SEATRIAL_GATEWAY_METRICS_URL": f"{gateway}/metrics",
            "SEATRIAL_PROMOTE_ON_REPLAY": "true",
        },
    }
    for name, data in settings.items():
        server.put(f"{CORE}/configmaps/{name}", {"metadata": {"name": name}, "data": data})
    if credentials:
        pair = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in pair.items()}
        name = "seatrial-store-credentials"
        server.put(f"{CORE}/secrets/{name}", {"metadata": {"name": name}, "data": data})
    template = yaml.safe_load((ROOT / "workflow_templates" / "release.yaml").read_text())
    server.put(f"{ARGO}/workflowtemplates/release", template)


def _kubeconfig(url: str) -> dict[str, Any]:
    names = ("other", "staging")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "other",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "c"}} for name in names],
    }
