"""Small models that need no training: the champion's graph under other names, each build a little different."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import onnx
import yaml
from onnx import helper
from real_cluster import ROOT, RealCluster

from seatrial import bundle, papers, release
from seatrial.spec import SPEC_FILE, Spec

CANARY = {
    "steps": [{"weight": 20, "min_s": 8, "max_s": 60}, {"weight": 50, "min_s": 3, "max_s": 60}],
    "watch_s": 3,
    "replay_per_s": 200,
}
"""Long enough that something can happen to it."""
READY_WITHIN_S = 45


@dataclass(frozen=True)
class Graph:
    """A model that serves already, to be released again under other names."""

    data: bytes
    spec: Spec

    def write(self, folder: Path, model: str, build: int, *, replicas: int = 1) -> None:
        """Write `folder`/<model>: `train: onnx`; another build is another model file, which answers the same."""
        target = folder / model
        target.mkdir(parents=True)
        graph = onnx.load_model_from_string(self.data)
        helper.set_model_props(graph, {"build": str(build)})
        (target / "model.onnx").write_bytes(graph.SerializeToString())
        text = self.spec.model_dump(mode="json")
        text |= {"model": model, "training": {"kind": "onnx", "file": "model.onnx"}, "canary": CANARY}
        text["serving"] |= {"ready_within_s": READY_WITHIN_S, "replicas": replicas}
        (target / SPEC_FILE).write_text(yaml.safe_dump(text, sort_keys=False))
        shutil.copyfile(
            ROOT / "models" / self.spec.model / self.spec.data.expectations, target / self.spec.data.expectations
        )


def serving(cluster: RealCluster, model: str, version: int) -> Graph:
    """The graph and spec of a version that serves."""
    store = cluster.store()
    of = release.serving(store, model, version).bundle
    data, spec = store.read(f"{bundle.prefix(of)}/{bundle.MODEL_FILE}"), store.read(papers.key(of, "spec.json"))
    assert data is not None
    return Graph(data, Spec.model_validate_json(spec or b""))
