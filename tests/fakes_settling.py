"""A cluster in which a release has ended, and what its Workflow says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fakes_rollout import MODEL, Rollout
from fakes_serving import MemoryWorkflows

from seatrial import ledger, release, route
from seatrial.ledger import Book
from steps.settle_release.__main__ import Ports, run
from steps.settle_release.contract import Inputs, Outputs

GATES = {name: {"decision": "pass"} for name in ("validate-data", "evaluate-model", "package-model")}


def workflow(version: int, **steps: dict[str, str] | int) -> dict[str, Any]:
    """A run: outputs of a step that ended, or the exit code of one that failed."""
    nodes: dict[str, Any] = {}
    told: dict[str, dict[str, str] | int] = {"resolve-release": {"outcome": "new", "version": str(version)}, **GATES}
    for name, given in {**told, **{key.replace("_", "-"): value for key, value in steps.items()}}.items():
        node: dict[str, Any] = {"templateName": name, "type": "Pod", "phase": "Succeeded", "outputs": {}}
        if isinstance(given, int):
            node |= {"phase": "Failed", "message": "it broke", "outputs": {"exitCode": str(given)}}
        else:
            node["outputs"]["parameters"] = [{"name": key, "value": value} for key, value in given.items()]
        nodes[name] = node
    return {"status": {"nodes": nodes}}


DEPLOYED = {"decision": "pass", "outcome": "deployed"}


class World(Rollout):
    """v1 serves, v2 is on trial at 10 %."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.package(1, champion=None)
        self.serve(1)
        self.package(2, champion=1)
        for version in (1, 2):
            self.reserve(version)
        self.deploy(2)
        self.shift(2, 10)
        self.runs_of: dict[str, Any] | None = {}

    def reserve(self, version: int) -> None:
        held = json.dumps({"model_name": MODEL, "release_id": f"uid-{version}"}).encode()
        self.store.objects[release.reservation_key(MODEL, version)] = held

    def shift(self, version: int, weight: int) -> None:
        until = self.clock.now()
        self.router.change(
            MODEL,
            lambda s: route.shift(s, version=version, weight=weight, owner=f"uid-{version}", watched_until=until),
            action="shift",
            reason="a test",
        )

    def promote(self, version: int) -> None:
        self.router.change(
            MODEL, lambda s: route.promote(s, version=version, owner=f"uid-{version}"), action="promote", reason="good"
        )

    def settle(self, version: int = 2, **changes: str) -> Outputs:
        asked = {
            "model_name": MODEL,
            "release_id": f"uid-{version}",
            "workflow_name": "run",
            "workflow_status": "Failed",
            "reason": "a test",
            **changes,
        }
        self.runs += 1
        scratch = self.tmp_path / f"scratch{self.runs}"
        scratch.mkdir()
        ports = Ports(
            workflows=MemoryWorkflows(self.runs_of),
            router=self.router,
            services=self.services,
            store=self.store,
            predictions=self.predictions,
            clock=self.clock,
        )
        return run(Inputs(**asked), scratch, ports)

    def happened(self, **steps: dict[str, str] | int) -> None:
        self.runs_of = {"run": workflow(2, **steps)}

    def versions(self) -> list[str]:
        return sorted(self.services.objects)

    def actions(self) -> list[str]:
        entries = Book(self.store, self.clock).entries(MODEL)
        ledger.verify(entries)
        return [entry.action for entry in entries]
