"""The walk of an InferenceService's status."""

from __future__ import annotations

from typing import Any

import serving_images as made

from seatrial.app.sandbox.control.status import Pod, next_status

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
DIGEST = "sha256:" + "a" * 64
READY = Pod(name="doubler-v1-0", ready=True, http_port=1)
STARTING = Pod(name="doubler-v1-0")
CRASHED = Pod(name="doubler-v1-0", waiting="CrashLoopBackOff", exit_code=1, exit_reason="Error", exit_time=NOW)
KILLED = Pod(name="doubler-v1-0", waiting="CrashLoopBackOff", exit_code=137, exit_reason="OOMKilled", exit_time=NOW)


def walk(*looks: list[Pod], cluster_local: bool = True) -> list[dict[str, Any]]:
    """The status after each look."""
    service = made.service(1, DIGEST)
    service["metadata"]["generation"] = 1
    if not cluster_local:
        del service["metadata"]["labels"]["networking.kserve.io/visibility"]
    found = []
    for pods in looks:
        service["status"] = next_status(service, pods, NOW)
        found.append(service["status"])
    return found


def short(status: dict[str, Any]) -> tuple[dict[str, str], str]:
    return {c["type"]: c["status"] for c in status["conditions"]}, status["modelStatus"]["transitionStatus"]


def test_the_recorded_sequence_is_walked_one_stage_at_a_time() -> None:
    stages = [short(status) for status in walk([STARTING], [READY], [READY], [READY])]
    assert stages == [
        ({"IngressReady": "True", "PredictorReady": "False", "Ready": "False"}, "InProgress"),
        ({"IngressReady": "True", "PredictorReady": "True", "Ready": "False"}, "InProgress"),
        ({"IngressReady": "True", "PredictorReady": "True", "Ready": "True"}, "InProgress"),
        ({"IngressReady": "True", "PredictorReady": "True", "Ready": "True"}, "UpToDate"),
    ]


def test_no_stage_is_skipped_by_a_replica_that_is_ready_at_once() -> None:
    assert short(walk([READY])[0])[0]["PredictorReady"] == "False"


def test_without_the_visibility_label_ingress_waits_for_the_predictor() -> None:
    stages = [short(s)[0]["IngressReady"] for s in walk([STARTING], [READY], [READY], cluster_local=False)]
    assert stages == ["False", "False", "True"]


def test_the_address_comes_with_ready() -> None:
    before, after = walk([STARTING], [READY], [READY])[1:]
    assert "address" not in before
    assert after["address"]["url"] == "http://doubler-v1-predictor.seatrial.svc.cluster.local"
    assert after["observedGeneration"] == 1


def test_ready_is_as_weak_as_kserves_and_copies_tell_the_truth() -> None:
    second = Pod(name="doubler-v1-1")
    status = walk([STARTING, second], *[[READY, second]] * 3)[-1]
    assert short(status) == ({"IngressReady": "True", "PredictorReady": "True", "Ready": "True"}, "UpToDate")
    assert status["modelStatus"]["copies"] == {"failedCopies": 0, "totalCopies": 1}


def test_no_copies_are_left_out_as_go_leaves_zero_out() -> None:
    assert walk([STARTING])[0]["modelStatus"]["copies"] == {"failedCopies": 0}


def test_ready_falls_with_the_last_replica() -> None:
    status = walk([STARTING], [READY], [READY], [READY], [STARTING])[-1]
    assert short(status)[0] == {"IngressReady": "True", "PredictorReady": "False", "Ready": "False"}
    assert "address" not in status


def test_a_crash_loop_blocks_with_its_exit_code() -> None:
    model = walk([STARTING], [CRASHED])[-1]["modelStatus"]
    assert model["transitionStatus"] == "BlockedByFailedLoad"
    assert model["states"]["targetModelState"] == "FailedToLoad"
    assert (model["lastFailureInfo"]["reason"], model["lastFailureInfo"]["exitCode"]) == ("ModelLoadFailed", 1)


def test_memory_over_the_limit_is_told_by_137() -> None:
    failure = walk([STARTING], [KILLED])[-1]["modelStatus"]["lastFailureInfo"]
    assert (failure["exitCode"], failure["message"]) == (137, "OOMKilled")


def test_the_last_failure_stays_while_the_next_pod_is_fine() -> None:
    model = walk([STARTING], [CRASHED], [READY], [READY], [READY])[-1]["modelStatus"]
    assert model["transitionStatus"] == "UpToDate"
    assert model["lastFailureInfo"]["exitCode"] == 1


def test_a_pod_that_waits_for_its_image_or_a_node_shows_nothing_but_not_ready() -> None:
    for waiting in ("ErrImagePull", "Unschedulable"):
        status = walk(*[[Pod(name="doubler-v1-0", waiting=waiting)]] * 4)[-1]
        assert short(status) == ({"IngressReady": "True", "PredictorReady": "False", "Ready": "False"}, "InProgress")
        assert "lastFailureInfo" not in status["modelStatus"]


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    service = made.service(1, DIGEST)
    service["metadata"]["generation"] = 1
    service["status"] = next_status(service, [STARTING], NOW)
    after = next_status(service, [READY], LATER)
    times = {condition["type"]: condition["lastTransitionTime"] for condition in after["conditions"]}
    assert times == {"IngressReady": NOW, "PredictorReady": LATER, "Ready": NOW}
