"""A drill on the cluster: the candidate is pushed to git as any other, and the load runs beside it."""

from __future__ import annotations

import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real_cluster import METRICS, ROOT, SERVING, RealCluster, until
from sources import Source

from infra.cluster.places import GATEWAY
from seatrial import bundle, papers, release
from seatrial.adapters.gateway import TraefikTraffic
from seatrial.app import drill as drills
from seatrial.app.commands import _load
from seatrial.names import kebab
from seatrial.ports import ArmCounts
from seatrial.spec import Spec


@dataclass(frozen=True, kw_only=True)
class Drill:
    """What came of it."""

    code: int
    said: dict[str, Any]
    seen: _load.Seen
    champion: int
    champion_errors: int
    """Errors that the gateway counted for the champion meanwhile."""


def drilled(source: Source, model: str, *, champion: int, data: str, folder: Path, fault: str = "errors") -> Drill:
    """Release a candidate with `fault`, under load from its deployment on."""
    cluster = source.cluster
    store = cluster.store()
    served = release.serving(store, model, champion).bundle
    replay, spec_json = (store.read(papers.key(served, name)) for name in ("replay.jsonl", "spec.json"))
    graph = store.read(f"{bundle.prefix(served)}/{bundle.MODEL_FILE}")
    assert graph is not None
    assert replay is not None
    spec = Spec.model_validate_json(spec_json or b"")
    made = drills.drill_source(graph, spec, fault, folder / "source", source=ROOT / "models" / model)
    revision = source.pushed(f"drill-{fault}", folder / "source")
    clean, marked, marker, log = (folder / name for name in ("clean", "marked", "marker", "load.jsonl"))
    clean.write_bytes(replay)
    if made.marker is not None:
        marked.write_bytes(drills.marked_requests(graph, replay, spec, made.marker))
    before, services = _errors(model, champion), _services(cluster, model)
    submitted = cluster.started("submit", model, "--data", data, "--revision", revision, "--reason", f"drill: {fault}")
    until(lambda: _services(cluster, model) - services or submitted.poll() is not None, 600, "the candidate's service")
    with_marker = marked if made.marker else None
    with _load.load(gateway=GATEWAY, model=model, clean=clean, marked=with_marker, marker=marker, log=log):
        over = threading.Event()
        marking = threading.Thread(target=_mark, args=(cluster, model, marker, over), daemon=True)
        marking.start()
        code, said = cluster.printed(submitted)
        over.set()
        marking.join(timeout=10)
        time.sleep(3)
    return Drill(
        code=code,
        said=said,
        seen=_load.seen(log, champion),
        champion=champion,
        champion_errors=_errors(model, champion) - before,
    )


def _mark(cluster: RealCluster, model: str, marker: Path, over: threading.Event) -> None:
    """Switch the marker on when the candidate has weight."""
    while not over.is_set():
        route: dict[str, Any] | None = None
        with suppress(AssertionError):  # the API server may be away for a moment
            route = cluster.object("httproute", kebab(model), SERVING)
        weights = (route or {}).get("metadata", {}).get("annotations", {}).get("seatrial.dev/weights", "")
        if "," in weights:
            marker.touch()
            return
        time.sleep(0.2)


def _services(cluster: RealCluster, model: str) -> set[str]:
    selector = f"seatrial.dev/model={kebab(model)}"
    return set(cluster.kubectl("-n", SERVING, "get", "inferenceservices", "-l", selector, "-o", "name").split())


def _errors(model: str, version: int) -> int:
    with closing(TraefikTraffic(METRICS, SERVING)) as traffic:
        counts = traffic.scrape(model).versions
    return counts.get(version, ArmCounts(requests=0, errors=0)).errors
