"""What breaks on a cluster, three releases side by side: traffic ends on the right version, and status says so.

The models are ready-made, so that a release takes about a minute.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from ready_made import Graph, serving
from real_cluster import ROOT, SERVING, STATE, WORKFLOWS, RealCluster, until
from sources import MODEL, First, Source, first_release, source

from infra.cluster.places import GATEWAY
from seatrial import papers, release
from seatrial.app.commands import _load
from seatrial.names import kebab

MODELS = ("tiny_a", "tiny_b", "tiny_c")
REPLICAS = {"tiny_a": 1, "tiny_b": 1, "tiny_c": 2}

GUIDE = ROOT / "docs" / "guides" / "cluster.md"
pytestmark = pytest.mark.long(12)
disturbs = pytest.mark.disturbs


@pytest.fixture(scope="module")
def repository(cluster: RealCluster) -> Iterator[Source]:
    with source(cluster) as checkout:
        yield checkout


@pytest.fixture(scope="module")
def first_served(cluster: RealCluster, repository: Source) -> First:
    return first_release(cluster, repository)


@pytest.fixture(scope="module")
def graph(cluster: RealCluster, first_served: First) -> Graph:
    return serving(cluster, MODEL, int(first_served.said["version"]))


@pytest.fixture(scope="module")
def data(first_served: First) -> str:
    return first_served.data


class Releases:
    """Begins releases and looks at how they are."""

    def __init__(self, cluster: RealCluster, repository: Source, graph: Graph, data: str, folder: Path) -> None:
        self.cluster, self.repository, self.graph, self.data, self.folder = cluster, repository, graph, data, folder
        self.builds = int(time.time())
        """Never one that this cluster has seen: that would be unchanged."""

    def begin(self, *models: str) -> dict[str, str]:
        """Model → the Workflow that releases its next build."""
        self.builds += 1
        place = self.folder / f"build-{self.builds}"
        for model in MODELS:
            self.graph.write(place, model, self.builds, replicas=REPLICAS[model])
        revision = self.repository.pushed(f"build-{self.builds}", place)
        return {model: self.submit(model, REVISION=revision, DATA_URI=self.data) for model in models}

    def submit(self, model: str, entrypoint: str | None = None, **parameters: str) -> str:
        """A Workflow made from the template, as `kubectl create` makes it."""
        given = {"MODEL_NAME": model, "REASON": "a test of failures", **parameters}
        spec: dict[str, Any] = {
            "workflowTemplateRef": {"name": "release"},
            "arguments": {"parameters": [{"name": name, "value": value} for name, value in given.items()]},
        }
        spec |= {"entrypoint": entrypoint} if entrypoint else {}
        manifest = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": f"{kebab(model)}-", "namespace": WORKFLOWS},
            "spec": spec,
        }
        made = self.cluster.kubectl("create", "-o", "json", "-f", "-", given=yaml.safe_dump(manifest))
        return str(json.loads(made)["metadata"]["name"])

    def running_pod(self, workflow: str, template: str) -> dict[str, Any]:
        """The pod of a step, once it runs."""
        what = f"{template} of {workflow} to run"
        return dict(until(lambda: next(filter(_runs, self.pods(workflow, template)), None), 400, what))

    def pods(self, workflow: str, template: str) -> list[dict[str, Any]]:
        """A step's pods that are there."""
        selector = f"workflows.argoproj.io/workflow={workflow},seatrial.dev/step={template}"
        listed = self.cluster.kubectl("-n", WORKFLOWS, "get", "pods", "-l", selector, "-o", "json")
        return list(json.loads(listed)["items"])

    def lose_pod(self, workflow: str, template: str) -> str:
        """Delete a step's pod while it runs; its uid."""
        lost = self.running_pod(workflow, template)["metadata"]
        self.cluster.kubectl("-n", WORKFLOWS, "delete", "pod", lost["name"], "--grace-period=1", "--wait=false")
        return str(lost["uid"])

    def was_made_again(self, workflow: str, template: str, lost: str) -> bool:
        """Another pod than the lost one brought the step to its end.

        Argo makes a pod that it loses early again under the same name and in the same attempt; later the attempt is in
        Error, or Failed with 143 when the step was told to end and said so, and a second attempt follows.
        """
        pods = {pod["metadata"]["uid"]: pod["status"]["phase"] for pod in self.pods(workflow, template)}
        return pods.get(lost) != "Succeeded" and "Succeeded" in pods.values()

    def attempts(self, workflow: str, template: str) -> list[dict[str, Any]]:
        """The nodes of a template's pods, in the order of their start."""
        nodes = self.cluster.workflow(workflow).get("status", {}).get("nodes", {}).values()
        pods = [node for node in nodes if node.get("templateName") == template and node["type"] == "Pod"]
        return sorted(pods, key=lambda node: str(node.get("startedAt")))

    def node(self, workflow: str, template: str) -> dict[str, Any]:
        """The node of the last attempt; empty: there is none yet."""
        return next(reversed(self.attempts(workflow, template)), {})

    def started(self, workflow: str, template: str) -> str:
        """When a step's pod began."""
        return str(self.node(workflow, template)["startedAt"])

    def lose_layer(self, workflow: str) -> None:
        """Let the registry lose the model's layer as soon as the image is pushed: nobody can pull it."""
        digest = until(lambda: self._image(workflow), 400, f"the image of {workflow}", 0.2)
        blobs = STATE / "data/registry/docker/registry/v2/blobs/sha256"
        manifest = json.loads((blobs / digest[7:9] / digest[7:] / "data").read_text())
        layer = manifest["layers"][-1]["digest"].removeprefix("sha256:")
        (blobs / layer[:2] / layer / "data").unlink()

    def _image(self, workflow: str) -> str:
        """The digest of the image that a release has pushed; empty: it has not yet."""
        outputs = self.node(workflow, "build-image").get("outputs", {}).get("parameters", [])
        return next((str(one.get("value", "")) for one in outputs if one["name"] == "digest"), "")

    def serving_pods(self, model: str, version: int) -> list[str]:
        """The version's pods that are ready and stay."""
        selector = f"serving.kserve.io/inferenceservice={kebab(model)}-v{version}"
        listed = self.cluster.kubectl("-n", SERVING, "get", "pods", "-l", selector, "-o", "json")
        return sorted(
            pod["metadata"]["name"]
            for pod in json.loads(listed)["items"]
            if "deletionTimestamp" not in pod["metadata"]
            and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        )

    def evicted(self, pod: str) -> bool:
        """Ask for a pod's eviction, as a drained node does; false: the budget does not allow it now."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": SERVING}}
        path = f"/api/v1/namespaces/{SERVING}/pods/{pod}/eviction"
        said = self.cluster.kubectl("create", f"--raw={path}", "-f", "-", given=json.dumps(eviction), fine=False)
        assert "disruption budget" in said or "Success" in said, said
        return "Success" in said

    def has_weight(self, model: str) -> bool:
        """Whether a candidate has a share of the traffic."""
        weights = self.route(model).get("seatrial.dev/weights", "")
        return "," in weights and not weights.endswith("=0")

    def route(self, model: str) -> dict[str, str]:
        """Annotations of the model's route."""
        found = self.cluster.object("httproute", kebab(model), SERVING)
        return dict((found or {}).get("metadata", {}).get("annotations", {}))

    def champion(self, model: str) -> int:
        """The version that the route calls the champion."""
        return int(self.route(model)["seatrial.dev/champion"])

    def outcome(self, workflow: str) -> str:
        """What settle-release said in the end."""
        nodes = self.cluster.ended(workflow)["status"]["nodes"].values()
        for node in nodes:
            for parameter in node.get("outputs", {}).get("parameters", []):
                if node.get("templateName") == "settle-release" and parameter["name"] == "outcome":
                    return str(parameter["value"])
        return "none"

    def status(self, model: str) -> dict[str, Any]:
        """What `seatrial status` says of it."""
        _, status = self.cluster.seatrial("status", model)
        (shown,) = status["models"]
        return dict(shown)

    def serves(self, model: str, *, version: int) -> None:
        """The version has all traffic, and status says so."""
        until(lambda: self.route(model).get("seatrial.dev/weights") == f"{version}=100", 200, f"{model} v{version}")
        shown = self.status(model)
        assert (shown["champion"], shown["candidate"]) == (version, None), shown
        assert set(shown["answers"]) == {f"v{version}"}, shown


def _runs(pod: dict[str, Any]) -> bool:
    main = [status for status in pod["status"].get("containerStatuses", []) if status["name"] == "main"]
    return bool(main) and "running" in main[0]["state"]


@pytest.fixture(scope="module")
def releases(
    cluster: RealCluster, repository: Source, graph: Graph, data: str, tmp_path_factory: pytest.TempPathFactory
) -> Releases:
    return Releases(cluster, repository, graph, data, tmp_path_factory.mktemp("builds"))


@pytest.fixture(scope="module")
def first(cluster: RealCluster, releases: Releases) -> None:
    """All three serve; a's deploy lost its pod on the way."""
    begun = releases.begin(*MODELS)
    lost = releases.lose_pod(begun["tiny_a"], "deploy-model")
    assert {model: releases.outcome(name) for model, name in begun.items()} == dict.fromkeys(MODELS, "promoted")
    assert releases.was_made_again(begun["tiny_a"], "deploy-model", lost)


def test_a_pod_deleted_in_deploy_costs_an_attempt_and_no_release(releases: Releases, first: None) -> None:
    releases.serves("tiny_a", version=releases.champion("tiny_a"))


def test_two_copies_evicted_one_after_the_other_lose_no_request(
    cluster: RealCluster, releases: Releases, first: None, tmp_path: Path
) -> None:
    model, version = "tiny_c", releases.champion("tiny_c")
    store = cluster.store()
    clean, log = tmp_path / "clean.jsonl", tmp_path / "load.jsonl"
    clean.write_bytes(store.read(papers.key(release.serving(store, model, version).bundle, "replay.jsonl")) or b"")
    with _load.load(gateway=GATEWAY, model=model, clean=clean, marked=None, marker=tmp_path / "no", log=log):
        until(lambda: log.is_file() and log.stat().st_size, 30, "the load")
        for pod in releases.serving_pods(model, version):
            until(partial(releases.evicted, pod), 120, f"the budget to let {pod} go")
            until(lambda: len(releases.serving_pods(model, version)) == REPLICAS[model], 120, "another copy", 0.2)
        time.sleep(3)
    seen = _load.seen(log, version)
    assert seen.requests > 1000
    assert (seen.lost, seen.failed, seen.wrong) == (0, 0, 0), seen


@dataclass(frozen=True)
class Disturbed:
    """Three canaries at once: a's pod is lost, b is stopped, c terminated; then API server and controller restart."""

    begun: dict[str, str]
    champions: dict[str, int]
    """Of before."""
    lost: str
    """The uid of a's pod."""


@pytest.fixture(scope="module")
def disturbed(cluster: RealCluster, releases: Releases, first: None) -> Disturbed:
    champions = {model: releases.champion(model) for model in MODELS}
    begun = releases.begin(*MODELS)
    lost = []
    waiting: dict[str, Callable[[], object]] = {
        "tiny_a": lambda: lost.append(releases.lose_pod(begun["tiny_a"], "run-canary")),
        "tiny_b": lambda: cluster.run("argo", "stop", "-n", WORKFLOWS, begun["tiny_b"]),
        "tiny_c": lambda: cluster.run("argo", "terminate", "-n", WORKFLOWS, begun["tiny_c"]),
    }
    while waiting:
        waiting.pop(until(lambda: next(filter(releases.has_weight, waiting), None), 400, f"{[*waiting]}", 0.2))()
    cluster.part("restart", "kube-apiserver")
    cluster.kubectl("-n", "argo", "rollout", "restart", "deployment/workflow-controller")
    return Disturbed(begun, champions, lost[0])


@disturbs
def test_a_lost_pod_a_restarted_api_server_and_a_restarted_controller_do_not_stop_a_canary(
    releases: Releases, disturbed: Disturbed
) -> None:
    run = disturbed.begun["tiny_a"]
    assert releases.outcome(run) == "promoted"
    assert releases.was_made_again(run, "run-canary", disturbed.lost)
    assert releases.champion("tiny_a") > disturbed.champions["tiny_a"]
    releases.serves("tiny_a", version=releases.champion("tiny_a"))


@disturbs
def test_a_stopped_release_takes_its_candidate_out(releases: Releases, disturbed: Disturbed) -> None:
    """By its exit handler; where that met the API server's restart Argo tries no more, and the janitor does it."""
    assert releases.outcome(disturbed.begun["tiny_b"]) in {"rolled_back", "none"}
    releases.serves("tiny_b", version=disturbed.champions["tiny_b"])


@disturbs
def test_the_janitor_takes_out_the_candidate_of_a_terminated_one(
    cluster: RealCluster, releases: Releases, disturbed: Disturbed
) -> None:
    run = disturbed.begun["tiny_c"]
    assert cluster.ended(run)["status"]["phase"] == "Failed"
    assert releases.outcome(run) == "none", "no exit handler runs"
    releases.serves("tiny_c", version=disturbed.champions["tiny_c"])


@disturbs
def test_without_its_image_a_candidate_is_refused_and_what_failed_goes_on_from_there(
    cluster: RealCluster, releases: Releases, disturbed: Disturbed
) -> None:
    """The registry loses a layer of c's image, and is away when b's is to be pushed; then it is back."""
    champions = {model: releases.champion(model) for model in MODELS}
    unpulled = releases.begin("tiny_c")["tiny_c"]
    releases.lose_layer(unpulled)
    failed = releases.begin("tiny_b")["tiny_b"]
    releases.running_pod(failed, "package-model")
    cluster.part("stop", "registry")
    try:
        assert releases.outcome(unpulled) == "rolled_back"
        assert releases.outcome(failed) == "failed"
    finally:
        cluster.part("start", "registry")
    releases.serves("tiny_c", version=champions["tiny_c"])

    trained = releases.started(failed, "train-model")
    cluster.run("argo", "retry", "-n", WORKFLOWS, failed)
    until(lambda: cluster.workflow(failed)["status"].get("phase") == "Running", 30, "the second try")
    assert releases.outcome(failed) == "promoted"
    assert releases.started(failed, "train-model") == trained, "training must not run again"
    assert releases.champion("tiny_b") > champions["tiny_b"]


@disturbs
def test_going_back_needs_no_kserve(cluster: RealCluster, releases: Releases, disturbed: Disturbed) -> None:
    previous = int(releases.route("tiny_a")["seatrial.dev/previous"])
    cluster.part("stop", "kserve")
    try:
        cluster.done("rollback", "tiny_a", "--reason", "KServe is away")
        releases.serves("tiny_a", version=previous)
    finally:
        cluster.part("start", "kserve")


def test_a_person_goes_back_with_kubectl_alone_as_the_guide_says_and_adopts(
    cluster: RealCluster, releases: Releases, disturbed: Disturbed
) -> None:
    model, champion = "tiny_b", releases.champion("tiny_b")
    previous = int(releases.route(model)["seatrial.dev/previous"])
    cluster.run("bash", "-c", the_guides_patch(model, previous))
    until(lambda: releases.status(model)["answers"].keys() == {f"v{previous}"}, 30, "the traffic to follow")
    assert releases.status(model)["champion"] == champion, "the route still says so: a person moved the traffic"

    cluster.done("adopt", model, "--reason", "moved by hand")
    releases.serves(model, version=previous)


def the_guides_patch(model: str, version: int) -> str:
    """The command of the guide, for this model and version in the place of its example's."""
    (found,) = re.findall(r"^ *(kubectl -n \S+ patch httproute .*?\}'\s)", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    named = str(found).replace("click_prediction", model).replace("click-prediction", kebab(model))
    return named.replace(f"{kebab(model)}-v1-", f"{kebab(model)}-v{version}-")
