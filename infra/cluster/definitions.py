"""The CRDs of each project as one JSON file in the cache: reading the YAML takes longer than applying it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from infra.cluster.build import Programs, Say
from infra.cluster.kubectl import Kubectl
from seatrial.app.sandbox.triton import exclusive

SOURCES: Final[Mapping[str, str]] = {
    "gateway-api": "crd",
    "kserve": "config/crd",
    "argo": "manifests/base/crds/full",
}
"""Part → where in its folder the kustomization of its CRDs lies."""


def ensure(programs: Programs, kubectl: Kubectl, say: Say) -> dict[str, Path]:
    """The file of each part's CRDs, written when the cache has none for its version."""
    started = time.monotonic()
    with exclusive(programs.cache / "build.lock"):
        files = {part: programs.cache / "definitions" / f"{programs.folders[part].name}.json" for part in SOURCES}
        todo = [part for part, file in files.items() if not file.exists()]
        for part in todo:
            _write(files[part], kubectl.rendered(programs.folders[part] / SOURCES[part]))
    if todo:
        say(f"built {'definitions':<44}{time.monotonic() - started:6.1f} s")
    return files


def _write(file: Path, objects: list[dict[str, object]]) -> None:
    file.parent.mkdir(exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    partial.rename(file)
