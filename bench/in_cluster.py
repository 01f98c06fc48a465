"""What our pipeline costs over plain YAML that runs the same containers: `make bench-cluster`, on the test cluster.

A small ready-made model is released over and over, in turn by the installed WorkflowTemplate and by bench/plain.py's
Workflow; each is a whole release with a canary over the one before.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from ready_made import serving
from real_cluster import STATE, WORKFLOWS, RealCluster
from sources import MODEL, first_release, source

from bench.fresh import ROOT
from bench.plain import plain

TINY = "tiny_bench"
ORDER = ("ours", "plain", "plain", "ours", "ours", "plain")
LIMIT = 1.1
PAGE = ROOT / "docs" / "benchmarks-cluster.md"


@dataclass(frozen=True)
class Run:
    """One release, by its Workflow."""

    how: str
    seconds: float
    """From its start to its end, as Argo says."""
    pods_s: float
    """Sum over its pods of the same."""


def main() -> None:
    """Measure, write, and show."""
    cluster = RealCluster(STATE / "kubeconfig")
    with source(cluster) as repository, tempfile.TemporaryDirectory() as folder:
        first = first_release(cluster, repository)
        graph = serving(cluster, MODEL, int(first.said["version"]))
        revisions = []
        for build in (now := int(time.time()), now + 1):
            graph.write(Path(folder, str(build)), TINY, build)
            revisions.append(repository.pushed(f"bench-{build}", Path(folder, str(build))))
        template = cluster.object("workflowtemplate", "release", WORKFLOWS)
        assert template is not None
        runs = []
        for number, how in enumerate(("first", *ORDER)):
            parameters = {
                "MODEL_NAME": TINY,
                "REVISION": revisions[number % 2],
                "DATA_URI": first.data,
                "REASON": f"bench: {how}",
            }
            made = plain(template, parameters=parameters) if how == "plain" else _ours(parameters)
            runs.append(_released(cluster, how, made))
            print(f"{how:6} {runs[-1].seconds:5.0f} s")
    PAGE.write_text("\n".join(page(runs)) + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def _ours(parameters: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "ours-", "namespace": WORKFLOWS},
        "spec": {
            "workflowTemplateRef": {"name": "release"},
            "arguments": {"parameters": [{"name": n, "value": v} for n, v in parameters.items()]},
        },
    }


def _released(cluster: RealCluster, how: str, made: Mapping[str, Any]) -> Run:
    name = cluster.kubectl("create", "-o", "name", "-f", "-", given=yaml.safe_dump(made)).strip().partition("/")[2]
    status = cluster.ended(name)["status"]
    assert status["phase"] == "Succeeded", f"{name}: {status.get('message')}"
    pods = [node for node in status["nodes"].values() if node["type"] == "Pod"]
    return Run(how, _seconds(status), sum(map(_seconds, pods)))


def _seconds(of: Mapping[str, Any]) -> float:
    begun, ended = (datetime.fromisoformat(of[name]) for name in ("startedAt", "finishedAt"))
    return (ended - begun).total_seconds()


def page(runs: list[Run]) -> list[str]:
    """The document, line by line."""
    medians = {how: statistics.median(r.seconds for r in runs if r.how == how) for how in ("ours", "plain")}
    ratio = medians["ours"] / medians["plain"]
    return [
        "# Our pipeline beside plain YAML, on the test cluster",
        "",
        "Written by `make bench-cluster`. A ready-made model, released by canary over the one before: by the template",
        "`release`, and by a Workflow that runs the same containers in one flat DAG with nothing of ours around them",
        "(`bench/plain.py`). In turn; seconds from a Workflow's start to its end, as Argo says.",
        "",
        "| | seconds | its pods together |",
        "| --- | --- | --- |",
        *(f"| {run.how} | {run.seconds:.0f} | {run.pods_s:.0f} |" for run in runs),
        "",
        f"Medians {medians['ours']:.0f} and {medians['plain']:.0f} s: **{ratio:.2f}** (at most {LIMIT}).",
    ]


if __name__ == "__main__":
    main()
