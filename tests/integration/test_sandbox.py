"""The sandbox for real: SeaweedFS, MLflow, Traefik, the control API and Triton on this machine."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import psutil
import pytest
import serving_images as made

from seatrial.adapters import gateway, kubernetes
from seatrial.app import sandbox
from seatrial.app.sandbox.ending import belongs
from seatrial.app.sandbox.places import is_free
from seatrial.errors import Conflict, Unavailable
from seatrial.ports import Answer, Manifest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = itertools.count(1)


@dataclass
class Bench:
    """A sandbox that is up, and what speaks to it."""

    home: Path
    up: sandbox.Sandbox
    seconds: float
    said: list[str]

    @property
    def cluster(self) -> kubernetes.Cluster:
        return kubernetes.connect("seatrial", str(self.up.kubeconfig))

    @property
    def layout(self) -> Path:
        return self.home / "images"

    def deploy(self, version: int, **options: Any) -> str:
        """A version that answers `version` times x; its service's name."""
        digest = made.write_image(self.layout, {"etc/base": b""}, made.model_files(version, version))
        self.cluster.services.create(made.service(version, digest, **options))
        return f"doubler-v{version}"

    def status(self, name: str) -> Manifest:
        return dict((self.cluster.services.get(name) or {}).get("status", {}))

    def wait(self, name: str, until: Callable[[Manifest], bool], *, within_s: float = 30) -> list[Manifest]:
        """Every status seen until one is as wanted."""
        seen: list[Manifest] = []
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            now = self.status(name)
            if not seen or seen[-1] != now:
                seen.append(now)
            if until(now):
                return seen
            time.sleep(0.03)
        pytest.fail(f"{name} did not come to it in {within_s} s; last {seen[-1]}")

    def shift(self, weights: dict[int, int], *, candidate: int | None = None) -> float:
        """Write the weights; the moment when that was done."""
        routes = self.cluster.routes
        wanted = made.route(weights, candidate=candidate)
        while True:
            found = routes.get(made.MODEL)
            try:
                if found is None:
                    routes.create(wanted)
                else:
                    version = found["metadata"]["resourceVersion"]
                    routes.replace(made.MODEL, {"spec": wanted["spec"]}, resource_version=version)
            except Conflict:
                continue
            return time.monotonic()

    def ask(self, x: float = 1.0, *, arm: str | None = None) -> Answer:
        predictions = gateway.GatewayPredictions(self.up.gateway_url)
        try:
            return predictions.ask(made.MODEL, made.request(x), arm=arm)
        finally:
            predictions.close()

    def answered_by(self, version: int, *, within_s: float = 10) -> None:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if (answer := self.ask(3.0)).version == version:
                assert answer.outputs == {"y": [3.0 * version]}
                return
            time.sleep(0.05)
        pytest.fail(f"v{version} does not answer; {answer}")

    def root_of(self, name: str) -> Path:
        """Where the image of a service lies unpacked."""
        manifest = self.cluster.services.get(name)
        assert manifest is not None
        image = manifest["spec"]["predictor"]["containers"][0]["image"]
        return self.home / "control" / "images" / str(image.partition("@sha256:")[2])

    def container(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.home / "control" / "pods" / f"{name}-0" / "status.json").read_text()))


def ready(status: Manifest) -> bool:
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    return conditions.get("Ready") == "True" and status["modelStatus"]["transitionStatus"] == "UpToDate"


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def living(home: Path) -> list[int]:
    """Every process of the sandbox."""
    return [p.pid for p in psutil.process_iter() if belongs(p, str(home)) and lives(p.pid)]


@pytest.fixture(scope="module")
def bench(new_home: Callable[[], Path]) -> Iterator[Bench]:
    home = new_home()
    said: list[str] = []
    start = time.monotonic()
    up = sandbox.up(home, source=ROOT, say=said.append)
    yield Bench(home, up, time.monotonic() - start, said)
    sandbox.down(home, say=said.append)
    assert living(home) == []


@pytest.fixture
def version(bench: Bench) -> Iterator[int]:
    """A version of this test's own; its objects are gone afterwards."""
    number = next(VERSIONS)
    yield number
    cluster = bench.cluster
    if (route := cluster.routes.get(made.MODEL)) is not None:
        cluster.routes.delete(made.MODEL, resource_version=route["metadata"]["resourceVersion"])
    for name in cluster.services.names(made.MODEL):
        cluster.services.delete(name)


def test_a_second_up_finds_the_first(bench: Bench) -> None:
    start = time.monotonic()
    again = sandbox.up(bench.home, source=ROOT, say=bench.said.append)
    assert time.monotonic() - start < 5
    assert (again.gateway_url, again.control_url, again.store_url) == (
        bench.up.gateway_url,
        bench.up.control_url,
        bench.up.store_url,
    )
    found = sandbox.find(bench.home)
    assert found is not None
    assert found.environment["seatrial-signing-key"] == bench.up.environment["seatrial-signing-key"]
    assert {p.name: p.state for p in sandbox.parts(bench.home) if not p.name.startswith("pod-")} == {
        "s3": "running",
        "tracking": "running",
        "gateway": "running",
        "control": "running",
    }


def test_everything_listens_on_this_machine_alone(bench: Bench) -> None:
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")  # IPv4 on a socket that could do both
        for pid in living(bench.home)
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_the_store_has_its_bucket_and_writes_once(bench: Bench) -> None:
    store = bench.up.environment["seatrial-store"]
    keys = bench.up.environment["seatrial-store-credentials"]
    s3 = boto3.client(
        "s3",
        endpoint_url=store["AWS_ENDPOINT_URL_S3"],
        region_name=store["AWS_REGION"],
        aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
    )
    s3.put_object(Bucket="seatrial", Key="probe", Body=b"1")
    with pytest.raises(s3.exceptions.ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket="seatrial", Key="probe", Body=b"2", IfNoneMatch="*")
    s3.close()


def test_a_version_becomes_ready_stage_by_stage_and_names_itself(bench: Bench, version: int) -> None:
    name = bench.deploy(version, replicas=2)
    seen = bench.wait(name, ready)
    stages = [tuple(c["status"] for c in status.get("conditions", [])) for status in seen]
    order = [(), ("True", "False", "False"), ("True", "True", "False"), ("True", "True", "True")]
    assert [stage for stage, _ in itertools.groupby(stages)] in (order, order[1:])
    bench.wait(name, lambda status: bool(status["modelStatus"]["copies"].get("totalCopies") == 2))
    bench.shift({version: 100})
    bench.answered_by(version)


def test_an_unpacked_image_goes_with_the_last_replica_that_runs_from_it(bench: Bench, version: int) -> None:
    name, other = bench.deploy(version), next(VERSIONS)
    kept = bench.deploy(other)
    for service in (name, kept):
        bench.wait(service, ready)
    mine, others = bench.root_of(name), bench.root_of(kept)
    assert mine.is_dir()
    bench.cluster.services.delete(name)
    deadline = time.monotonic() + 30
    while mine.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not (bench.home / "control" / "pods" / f"{name}-0").exists()
    assert others.is_dir()


def test_weights_follow_within_a_second_and_nothing_is_lost(bench: Bench, version: int) -> None:
    other = next(VERSIONS)
    for number in (version, other):
        bench.deploy(number)
    for number in (version, other):
        bench.wait(f"doubler-v{number}", ready)
    bench.shift({version: 100, other: 0}, candidate=other)
    bench.answered_by(version)
    traffic = gateway.TraefikTraffic(bench.up.gateway_metrics_url, "seatrial")
    before = counted(traffic, version, other)
    log, moments = under_load(bench, [{version: w, other: 100 - w} for w in (90, 50, 0, 100)], candidate=other)
    assert bench.ask(2.0, arm="canary").version == other
    time.sleep(0.2)  # a request is counted just after its answer
    after = counted(traffic, version, other)
    traffic.close()

    assert {status for _, status, _ in log} == {200}
    for (moment, share), end in zip(moments, [m for m, _ in moments[1:]] + [log[-1][0]], strict=True):
        window = [who for at, _, who in log if moment + 1.0 <= at < end]
        assert sum(who == other for who in window) / len(window) == pytest.approx(share, abs=0.02)
    assert after[0] - before[0] == len(log)  # the request by header is not among them
    assert after[1] == 0


def counted(traffic: gateway.TraefikTraffic, *versions: int) -> tuple[int, int]:
    """Requests and errors of these versions; the gateway forgets versions that no route names any more."""
    found = traffic.scrape(made.MODEL).versions
    known = [found[version] for version in versions if version in found]
    return sum(counts.requests for counts in known), sum(counts.errors for counts in known)


def under_load(
    bench: Bench, plan: list[dict[int, int]], *, candidate: int
) -> tuple[list[tuple[float, int, int | None]], list[tuple[float, float]]]:
    """Ask from four threads while the weights go through `plan`; the log, and when each share was written."""
    log: list[tuple[float, int, int | None]] = []
    stop = threading.Event()

    def client() -> None:
        predictions = gateway.GatewayPredictions(bench.up.gateway_url)
        while not stop.is_set():
            answer = predictions.ask(made.MODEL, made.request(1.0))
            log.append((time.monotonic(), answer.status, answer.version))
        predictions.close()

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    moments = []
    for weights in plan:
        moments.append((bench.shift(weights, candidate=candidate), weights[candidate] / 100))
        time.sleep(2.0)
    stop.set()
    for thread in threads:
        thread.join()
    return sorted(log), moments


def test_a_killed_triton_is_started_again(bench: Bench, version: int) -> None:
    name = bench.deploy(version)
    bench.wait(name, ready)
    bench.shift({version: 100})
    bench.answered_by(version)
    before = bench.container(name)
    os.kill(before["container"], signal.SIGKILL)
    bench.wait(name, lambda status: not ready(status))
    assert bench.ask().status in {502, 503}  # 502 until the gateway has read that nobody is left
    bench.wait(name, ready)
    bench.answered_by(version)
    after = bench.container(name)
    assert after["container"] != before["container"]
    assert after["last"]["exit_code"] == 137


def test_a_killed_control_api_stops_no_serving_and_comes_back(bench: Bench, version: int) -> None:
    name = bench.deploy(version)
    bench.wait(name, ready)
    bench.shift({version: 100})
    bench.answered_by(version)
    serving = bench.container(name)["container"]
    control = next(part for part in sandbox.parts(bench.home) if part.name == "control")
    os.kill(control.pid, signal.SIGKILL)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        assert bench.ask().version == version
        try:
            bench.cluster.routes.get(made.MODEL)
        except Unavailable:
            time.sleep(0.05)
        else:
            break
    time.sleep(0.5)
    assert bench.ask().version == version
    assert ready(bench.status(name))
    assert bench.container(name)["container"] == serving


def test_what_can_never_be_ready_says_why_as_kserve_does(bench: Bench, version: int) -> None:
    crash, memory, node = (next(VERSIONS) for _ in range(3))
    services = bench.cluster.services
    services.create(made.service(version, "sha256:" + "0" * 64))
    bench.deploy(node, node_selector={"seatrial.dev/drill": "never"})
    broken = {**made.model_files(crash, 1), f"models/{made.MODEL}/{crash}/model.onnx": b"no model"}
    services.create(made.service(crash, made.write_image(bench.layout, broken)))
    bench.deploy(memory, memory="40Mi")

    def blocked_by(code: int) -> Callable[[Manifest], bool]:
        def is_blocked(status: Manifest) -> bool:
            model = status.get("modelStatus", {})
            blocked = model.get("transitionStatus") == "BlockedByFailedLoad"
            return bool(blocked and model["lastFailureInfo"]["exitCode"] == code)

        return is_blocked

    bench.wait(f"doubler-v{crash}", blocked_by(1))
    bench.wait(f"doubler-v{memory}", blocked_by(137))
    for waiting in (version, node):
        assert not ready(bench.status(f"doubler-v{waiting}"))
    notes = {part.name: part.note for part in sandbox.parts(bench.home)}
    assert "ErrImagePull" in notes[f"pod-doubler-v{version}-0"]
    assert "Unschedulable" in notes[f"pod-doubler-v{node}-0"]


def test_a_deleted_service_takes_its_triton_with_it(bench: Bench, version: int) -> None:
    name = bench.deploy(version)
    bench.wait(name, ready)
    pids = bench.container(name)
    bench.cluster.services.delete(name)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and (lives(pids["container"]) or lives(pids["keeper"])):
        time.sleep(0.1)
    assert not lives(pids["container"])
    assert not lives(pids["keeper"])


def test_a_killed_supervisor_leaves_no_orphan_and_up_restores_all(bench: Bench, version: int) -> None:
    name = bench.deploy(version)
    bench.wait(name, ready)
    bench.shift({version: 100})
    bench.answered_by(version)
    os.kill(int((bench.home / "supervisor" / "supervisord.pid").read_text()), signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and living(bench.home):
        time.sleep(0.1)
    assert living(bench.home) == []
    assert sandbox.find(bench.home) is None
    again = sandbox.up(bench.home, source=ROOT, say=bench.said.append)
    assert again.gateway_url == bench.up.gateway_url
    bench.answered_by(version, within_s=30)


def test_down_leaves_no_process_and_no_port(tmp_path: Path) -> None:
    home, said = tmp_path.resolve(), list[str]()
    up = sandbox.up(home, source=ROOT, say=said.append)
    ports = [int(url.rpartition(":")[2]) for url in (up.gateway_url, up.control_url, up.store_url, up.tracking_url)]
    assert httpx.get(f"{up.tracking_url}/health", trust_env=False).status_code == 200
    sandbox.down(home, say=said.append)
    assert living(home) == []
    assert all(map(is_free, ports))
    assert said[-1] == "stopped: no process and no port is left"
    sandbox.down(home, say=said.append)
    assert said[-1] == "nothing was running"
    assert {part.state for part in sandbox.parts(home)} == {"stopped"}
