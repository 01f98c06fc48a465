"""deploy_model and settle_release for real: S3, Traefik, the control API and Triton on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import fakes_release as made
import numpy as np
import pytest
import serving_images as images
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from fakes_rollout import MODEL, NAME, SPEC, MemoryImages, Rollout
from fakes_serving import Deadly, MemoryWorkflows

from seatrial import bundle, ledger, route
from seatrial.adapters import clock, gateway, kubernetes, s3
from seatrial.adapters.images import LayoutImages
from seatrial.app import sandbox
from seatrial.errors import InvalidInput
from seatrial.ledger import Action, Book
from seatrial.route import Router, RouteState
from seatrial.triton import config, requests
from steps.deploy_model.contract import Outputs
from steps.settle_release.__main__ import Ports as SettlePorts
from steps.settle_release.__main__ import run as settle
from steps.settle_release.contract import Inputs as SettleInputs

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {
    "price": np.array([[-1.0], [0.0], [2.5]], dtype=np.float32),
    "visits": np.array([[0], [1], [3]]),
    "shop": np.array([["hill"], ["harbour"], ["söder, 'ö'"]]),
    "member": np.array([[True], [False], [True]]),
}


class Real(Rollout):
    """The same papers, in the sandbox's store; images in its layout; nothing is faked but the steps before."""

    def __init__(self, tmp_path: Path, home: Path, up: sandbox.Sandbox) -> None:
        self.tmp_path, self.home, self.runs, self.bundles, self.deadly = tmp_path, home, 0, {}, Deadly()
        values = {name: value for source in up.environment.values() for name, value in source.items()}
        key = load_pem_private_key(values["SEATRIAL_SIGNING_KEY"].encode(), password=None)
        assert isinstance(key, Ed25519PrivateKey)
        self.key = key
        self.store: Any = s3.from_environment(values)
        self.images = MemoryImages()
        self.time: Any = clock.SystemClock()
        self.clock = self.time
        self.cluster = kubernetes.connect("seatrial", str(up.kubeconfig))
        self.services: Any = self.cluster.services
        self.predictions: Any = gateway.GatewayPredictions(up.gateway_url)
        self.said: list[str] = []
        self.router = Router(
            self.cluster.routes,
            self.time,
            namespace="seatrial",
            book=Book(self.store, self.time),
            say=lambda what, **_: self.said.append(what),
        )

    def ports(self, **changes: Any) -> Any:
        layout = LayoutImages(self.home / "images")
        return super().ports(clock=self.time, trusted_keys=(self.key.public_key(),), images=layout, **changes)

    def close(self) -> None:
        """Let every connection go."""
        self.predictions.close()
        self.store._client.close()
        self.cluster.routes._resource._api.api_client.rest_client.pool_manager.clear()

    def put(self, key: str, data: bytes) -> None:
        self.store.write(key, data)

    def content(self, version: int) -> dict[str, bytes]:
        return {"model/model.onnx": self.onnx(version), "config.pbtxt": config.render(SPEC).encode()}

    def onnx(self, version: int) -> bytes:
        return made.onnx_model(bias=-1.0 - version / 10)

    def golden(self, version: int) -> bytes:
        logit = 1.5 * COLUMNS["price"] + 0.5 * COLUMNS["visits"] + np.where(COLUMNS["shop"] == "hill", -1.0, 0.2)
        logit = logit + 0.4 * COLUMNS["member"] - 1.0 - version / 10
        answers = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return requests.lines(requests.examples(SPEC, COLUMNS, answers, range(3), ["a", "b", "c"]))

    def image(self, version: int) -> str:
        files = {f"models/{MODEL}/config.pbtxt": self.content(version)["config.pbtxt"]}
        files[f"models/{MODEL}/{version}/model.onnx"] = self.onnx(version)
        labels = {bundle.IMAGE_LABEL: self.bundles[version]}
        digest = images.write_image(self.home / "images", {"etc/base": b""}, files, labels=labels)
        return f"localhost/seatrial/{NAME}@{digest}"

    def roll(self, version: int) -> Outputs:
        return self.deploy(version, image=self.image(version))

    def change(self, decide: Any, action: Action) -> RouteState:
        return self.router.change(MODEL, decide, action=action, reason="a test")

    def promote(self, version: int) -> RouteState:
        return self.change(lambda s: route.promote(s, version=version, owner=f"uid-{version}"), "promote")

    def shift(self, version: int, weight: int) -> RouteState:
        until = self.time.now() + timedelta(minutes=5)
        return self.change(
            lambda s: route.shift(s, version=version, weight=weight, owner=f"uid-{version}", watched_until=until),
            "shift",
        )

    def answered_by(self, *expected: int, consecutive: int = 20) -> dict[str, int]:
        body = requests.body(requests.parse(self.golden(1))[0])
        return route.read_back(self.predictions, self.time, MODEL, body, expected=expected, consecutive=consecutive)

    def settle(self, version: int, workflow: dict[str, Any] | None) -> dict[str, Any]:
        self.runs += 1
        scratch = self.tmp_path / f"settle{self.runs}"
        scratch.mkdir()
        ports = SettlePorts(
            workflows=MemoryWorkflows({"run": workflow} if workflow else {}),
            router=self.router,
            services=self.services,
            store=self.store,
            predictions=self.predictions,
            clock=self.time,
        )
        asked = SettleInputs(
            model_name=MODEL,
            release_id=f"uid-{version}",
            workflow_name="run",
            workflow_status="Failed",
            reason="a test",
        )
        found: dict[str, Any] = json.loads(settle(asked, scratch, ports).summary.read_text())
        return found


@pytest.fixture(scope="module")
def real(new_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    home = new_home()
    said: list[str] = []
    up = sandbox.up(home, source=ROOT, say=said.append)
    world = Real(tmp_path_factory.mktemp("work"), home, up)
    yield world
    world.close()
    sandbox.down(home, say=said.append)


def test_versions_come_and_go_and_the_way_back_holds(real: Real) -> None:
    """One story, because each part needs the one before; a read-back ends each."""
    real.package(1, champion=None)
    assert real.roll(1).outcome == "deployed"
    assert set(real.answered_by()) == {"404"}
    real.promote(1)
    assert "v1" in real.answered_by(1)

    real.package(2, champion=1)
    assert real.roll(2).outcome == "deployed"
    real.shift(2, 50)
    assert {"v1", "v2"} <= set(real.answered_by(1, 2))

    found = real.settle(2, None)  # as if its canary had been killed, and its Workflow had been lost
    assert found["outcome"] == "rolled_back"
    assert found["deleted_services"] == [f"{NAME}-v2"]
    assert found["read_back"]["v1"] >= 20

    real.package(3, champion=1)
    assert real.roll(3).outcome == "deployed"
    real.shift(3, 100)
    real.promote(3)
    assert "v3" in real.answered_by(3)
    assert real.settle(3, None)["outcome"] == "promoted"
    assert real.services.names(MODEL) == [f"{NAME}-v1", f"{NAME}-v3"]

    real.change(lambda s: route.rollback(s, owner="ann", away_from=3), "rollback")
    assert "v1" in real.answered_by(1)
    with pytest.raises(InvalidInput, match="nothing to go back to"):
        real.change(lambda s: route.rollback(s, owner="ann"), "rollback")

    entries = Book(real.store, real.time).entries(MODEL)
    ledger.verify(entries)
    assert [entry.action for entry in entries] == [
        *("begin", "promote"),
        *("begin", "shift", "settle"),
        *("begin", "shift", "promote", "rollback"),
    ]
    assert "ledger_not_written" not in real.said
