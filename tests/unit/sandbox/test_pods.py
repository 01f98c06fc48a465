"""From an InferenceService to local processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import serving_images as made

from seatrial.app.sandbox.control import pods
from seatrial.app.sandbox.control.admission import amount

DIGEST = "sha256:" + "a" * 64
PORTS = {"http": 7001, "grpc": 7002, "metrics": 7003}
ROOT = Path("/images/abc")


def test_the_clusters_arguments_become_this_machines() -> None:
    arguments = made.service(1, DIGEST)["spec"]["predictor"]["containers"][0]["args"]
    assert pods.local_arguments(arguments, root=ROOT, ports=PORTS) == [
        "--model-repository=/images/abc/models",
        "--model-control-mode=explicit",
        "--load-model=*",
        "--strict-readiness=true",
        "--http-port=7001",
        "--http-address=127.0.0.1",
        "--grpc-port=7002",
        "--grpc-address=127.0.0.1",
        "--metrics-port=7003",
        "--metrics-address=127.0.0.1",
        "--exit-timeout-secs=5",
    ]


def test_ports_that_are_not_given_are_set_all_the_same() -> None:
    local = pods.local_arguments(["--http-address=0.0.0.0"], root=ROOT, ports=PORTS)
    assert "--http-address=0.0.0.0" not in local
    assert {"--http-port=7001", "--grpc-port=7002", "--metrics-port=7003"} <= set(local)


def test_a_pod_asks_its_own_triton_and_has_its_limits() -> None:
    service = made.service(2, DIGEST, memory="512Mi")
    pod = pods.pod(service, root=ROOT, ports=PORTS, triton=Path("/t/tritonserver"), path="/usr/bin")
    assert pod["command"][0] == "/t/tritonserver"
    assert pod["memory_bytes"] == 512 * 1024**2
    assert pod["probes"]["readiness"] == {
        "path": "/v2/models/doubler/versions/2/ready",
        "port": 7001,
        "period_s": 1,
        "timeout_s": 1,
        "failures": 2,
    }


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({}, True),
        ({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}, True),
        ({"kubernetes.io/arch": "arm64"}, False),
        ({"seatrial.dev/drill": "never"}, False),
    ],
)
def test_the_one_node_takes_only_what_it_matches(selector: dict[str, str], fits: bool) -> None:  # noqa: FBT001
    assert pods.schedulable(made.service(1, DIGEST, node_selector=selector)) is fits


def test_every_replica_has_a_name() -> None:
    assert pods.pod_names(made.service(1, DIGEST, replicas=2)) == ["doubler-v1-0", "doubler-v1-1"]


def test_the_pre_stop_sleep_is_cut_to_what_the_gateway_needs() -> None:
    assert pods.pre_stop_s(made.service(1, DIGEST)) == pods.PRE_STOP_MAX_S


@pytest.mark.parametrize(("text", "value"), [("500m", 0.5), ("2", 2), ("1.5", 1.5), ("64Mi", 2**26), ("1Gi", 2**30)])
def test_quantities(text: str, value: float) -> None:
    assert float(amount(text)) == value
