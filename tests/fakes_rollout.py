"""A cluster with versions of tea_orders: their papers in the store, signed; some of them serving."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes_release as made
from fakes_serving import (
    NAMESPACE,
    Deadly,
    FakeClock,
    Killed,
    MemoryRoutes,
    MemoryServices,
    MemoryStore,
    RoutedPredictions,
)

from seatrial import bundle, digests, papers, release, verdict
from seatrial.adapters import trees
from seatrial.ledger import Book
from seatrial.ports import Clock, Manifest
from seatrial.release import Release, Served
from seatrial.route import Router, RouteState
from seatrial.verdict import Gate
from steps import _required
from steps.deploy_model.__main__ import Ports
from steps.deploy_model.__main__ import run as deploy
from steps.deploy_model.contract import Inputs, Outputs
from steps.package_model import papers as package_papers

MODEL, NAME = "tea_orders", "tea-orders"
HOLDOUT = digests.of_bytes(b"rows")
SPEC = made.spec_of()
GOLDEN = [
    {"id": f"row{i}", "request": {"id": f"row{i}", "inputs": []}, "answer": {"probability": [i / 8]}, "tolerance": 1e-4}
    for i in range(4)
]


def image_of(version: int) -> str:
    return f"localhost/seatrial/tea-orders@{digests.of_bytes(str(version).encode())}"


class MemoryImages:
    """Labels by image; an image that nobody put here may not be read."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, str]] = {}

    def labels(self, image: str) -> dict[str, str] | None:
        return self.kept.get(image)


class Rollout:
    """Everything that a roll-out touches. `deadly` counts effects and can end the process after any of them."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.key = made.KEY
        self.deadly = Deadly()
        self.store, self.routes = MemoryStore(self.deadly), MemoryRoutes(self.deadly)
        self.services = MemoryServices(self.deadly)
        self.images = MemoryImages()
        self.clock: Clock = FakeClock()
        self.predictions = RoutedPredictions(self.routes, {row["id"]: row["answer"] for row in GOLDEN})  # type: ignore[misc]
        self.router = Router(
            self.routes, self.clock, namespace=NAMESPACE, book=Book(self.store, self.clock), say=lambda *_, **__: None
        )
        self.bundles: dict[int, str] = {}
        self.runs = 0

    def ports(self, **changes: Any) -> Ports:
        values: dict[str, Any] = {
            "store": self.store,
            "images": self.images,
            "services": self.services,
            "router": self.router,
            "predictions": self.predictions,
            "clock": self.clock,
            "trusted_keys": (made.KEY.public_key(),),
            "namespace": NAMESPACE,
            "replicas_min": 1,
        }
        return Ports(**{**values, **changes})

    def put(self, key: str, data: bytes) -> None:
        """Write into the store, as earlier steps would have; not an effect of the step under test."""
        self.store.objects[key] = data

    def content(self, version: int) -> dict[str, bytes]:
        """The files of a version's bundle."""
        return {"model/model.onnx": f"model {version}".encode(), "config.pbtxt": b""}

    def golden(self, version: int) -> bytes:
        """The version's golden requests and answers."""
        return b"\n".join(json.dumps(row).encode() for row in GOLDEN)

    def replay(self, version: int) -> bytes:
        """The version's replay requests and answers."""
        return self.golden(version)

    def package(self, version: int, *, champion: int | None) -> str:
        """Put bundle and papers of `version` into the store, as judged against `champion`; the bundle's digest."""
        root = self.tmp_path / f"bundle{version}"
        (root / "model").mkdir(parents=True)
        for name, content in self.content(version).items():
            (root / name).write_bytes(content)
        bundle.seal(root, MODEL)
        sealed = trees.put_bundle(self.store, root)
        self.bundles[version] = sealed.digest
        self.images.kept[image_of(version)] = {bundle.IMAGE_LABEL: sealed.digest}
        record = self._release(version, champion)
        self.put(release.key(MODEL, record.release_id), record.model_dump_json().encode())
        rival = {} if champion is None else {"champion": self.bundles[champion]}
        known = {
            "spec.json": SPEC.model_dump_json().encode(),
            "release.json": record.model_dump_json().encode(),
            "golden.jsonl": self.golden(version),
            "replay.jsonl": self.replay(version),
        }
        judged: dict[Gate, dict[str, str]] = {
            "validate_data": {"holdout_rows": HOLDOUT, "train_rows": HOLDOUT, "data": HOLDOUT},
            "evaluate_model": {"model": sealed.model_digest, "holdout_rows": HOLDOUT, **rival},
            "package_model": {"model": sealed.model_digest, "bundle": sealed.digest, **package_papers.judged(known)},
        }
        asked = _required.of(SPEC, champion=champion is not None)
        for gate, what in judged.items():
            known[f"{gate}.dsse.json"] = self.signed(gate, what, release=record, required=asked[gate])
        for name, data in known.items():
            self.put(papers.key(sealed.digest, name), data)
        return sealed.digest

    def signed(self, gate: Gate, judged: dict[str, str], *, release: Release, **changes: Any) -> bytes:
        names = changes.get("required", ("unique_ids",))
        decision = changes.get("decision", "pass")
        checks = [verdict.Check(name=name, decision=decision, reason="as the test wants it") for name in names]
        concluded = verdict.conclude(gate, release, SPEC, required=names, checks=checks, judged=judged)
        return verdict.sign(concluded, changes.get("key", self.key))

    def serve(self, version: int, previous: int | None = None) -> None:
        """Make `version` champion, as an earlier release would have left it."""
        self.put(release.served_key(MODEL, version), self._served(version).model_dump_json().encode())
        self.services.put(MODEL, version)
        state = RouteState(
            model_name=MODEL, exists=True, champion=version, previous=previous, weights={version: 100}, owner="earlier"
        )
        self.routes._keep(NAME, state.manifest(NAMESPACE))

    def deploy(self, version: int, ports: Ports | None = None, **changes: Any) -> Outputs:
        asked = {
            "model_name": MODEL,
            "version": version,
            "release_id": f"uid-{version}",
            "image": image_of(version),
            "bundle_digest": self.bundles[version],
            "reason": "a test",
            **changes,
        }
        self.runs += 1
        scratch = self.tmp_path / f"scratch{self.runs}"
        scratch.mkdir()
        return deploy(Inputs(**asked), scratch, ports or self.ports())

    def route(self) -> Manifest | None:
        return self.routes.objects.get(NAME)

    def _served(self, version: int) -> Served:
        return Served(version=version, bundle=self.bundles[version], image=image_of(version), release_digest=made.ZERO)

    def _release(self, version: int, champion: int | None = None) -> Release:
        return Release(
            release_id=f"uid-{version}",
            model_name=MODEL,
            version=version,
            revision="abc",
            reason="a test",
            data_uri="file:///orders.csv",
            source_digest=made.ZERO,
            spec_digest=SPEC.digest,
            data_digest=made.ZERO,
            images_digest=made.ZERO,
            release_digest=digests.of_json(version),
            champion=None if champion is None else self._served(champion),
        )


def killed(act: Callable[[], object]) -> bool:
    """Whether the process died in `act`."""
    try:
        act()
    except Killed:
        return True
    return False
