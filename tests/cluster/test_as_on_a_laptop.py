"""One source and one file of data, released on the cluster and on a laptop: the same model, bundle and gate results.

Each place numbers its versions itself, and builds on a serving base of its own: neither is compared.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from real_cluster import ROOT, RealCluster
from sources import MODEL, first_release, source

from infra.cluster.places import REGISTRY
from seatrial import papers, release
from seatrial.adapters import s3
from seatrial.app import sandbox
from seatrial.app.oci import Layout
from seatrial.ports import Store

DETERMINISTIC = ("validate_data", "evaluate_model")
"""Gates whose every number follows from the data, the source and the seed; the others time things."""


def released_here(home: Path, rows: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "seatrial.app.cli", "release", MODEL, "--data", rows.as_uri(), "--json"]
    environment = {**os.environ, "SEATRIAL_HOME": str(home), "NO_COLOR": "1"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def gates(store: Store, model_version: int) -> dict[str, Any]:
    """Gate → its checks and the digests of what it judged."""
    bundle = release.serving(store, MODEL, model_version).bundle
    found = {}
    for gate in DETERMINISTIC:
        envelope = json.loads(store.read(papers.key(bundle, f"{gate}.dsse.json")) or b"")
        verdict = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
        found[gate] = {name: verdict[name] for name in ("decision", "required", "checks", "judged", "policy")}
    return found


def served(store: Store, version: int) -> release.Served:
    return release.serving(store, MODEL, version)


def layer_there(image: str) -> str:
    """The diff id of an image's last layer, the model's, from the registry."""
    repository, _, digest = image.partition("@")
    path = repository.removeprefix(f"{REGISTRY}/")
    manifest = "application/vnd.oci.image.manifest.v1+json"
    with httpx.Client(base_url=f"http://{REGISTRY}/v2/{path}", trust_env=False) as client:
        config = client.get(f"/manifests/{digest}", headers={"accept": manifest}).json()["config"]["digest"]
        return str(client.get(f"/blobs/{config}").json()["rootfs"]["diff_ids"][-1])


@pytest.mark.long(2)
def test_the_cluster_and_the_laptop_make_the_same_of_the_same(
    cluster: RealCluster, new_home: Callable[[], Path]
) -> None:
    home = new_home()
    with source(cluster) as repository:
        first = first_release(cluster, repository)
    there = first.said
    try:
        here = released_here(home, first.rows)
        found = sandbox.find(home)
        assert found is not None
        environment = {**found.environment["seatrial-store"], **found.environment["seatrial-store-credentials"]}
        local, remote = s3.from_environment(environment), cluster.store()
        assert here["outcome"] == "promoted"
        mine, theirs = served(local, here["version"]), served(remote, there["version"])
        assert mine.bundle == theirs.bundle
        assert gates(local, here["version"]) == gates(remote, there["version"])
        image = Layout(Path(found.environment["seatrial-registry"]["SEATRIAL_IMAGES"])).read(
            mine.image.partition("@")[2]
        )
        assert image.layers[-1].diff_id == layer_there(theirs.image)
    finally:
        sandbox.down(home, say=print)
