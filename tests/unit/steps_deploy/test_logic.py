"""When a service is truly ready."""

from __future__ import annotations

from typing import Any

import pytest
from fakes_serving import ready

from steps.deploy_model.logic import readiness

SERVICE: dict[str, Any] = {"metadata": {"generation": 1}, "spec": {"predictor": {"minReplicas": 2}}}
BEFORE, READY_AT, AFTER = "2026-01-01T12:00:09Z", "2026-01-01T12:00:10Z", "2026-01-01T12:00:11Z"
NO_POD = {"type": "Ready", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "no pod"}


def model(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = ready(SERVICE)["modelStatus"]
    return {"modelStatus": {**found, **changes}}


def looked_at(**status: Any) -> tuple[str, str]:
    found = readiness({**SERVICE, "status": ready(SERVICE, **status)}, replicas=2)
    return found.state, found.reason


def test_loaded_up_to_date_on_all_replicas_is_ready() -> None:
    assert looked_at() == ("ready", "2 of 2 copies are ready")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"observedGeneration": 0}, "not seen by the controller"),
        ({"conditions": [NO_POD]}, "MinimumReplicasUnavailable no pod"),
        ({"conditions": []}, "no conditions yet"),
        (model(transitionStatus="InProgress"), "InProgress"),
        (model(states={"activeModelState": "Pending"}), "Pending"),
        (model(copies={"totalCopies": 1}), "1 of 2 copies"),
        (model(copies={"failedCopies": 0}), "0 of 2 copies"),
        (model(lastFailureInfo={"time": AFTER, "message": "OOM"}), "failed after it was ready: message OOM"),
    ],
)
def test_ready_alone_is_not_ready(status: dict[str, Any], words: str) -> None:
    state, reason = looked_at(**status)
    assert state == "waiting"
    assert words in reason


@pytest.mark.parametrize("time", [BEFORE, READY_AT, None])
def test_a_failure_before_it_was_ready_is_over(time: str | None) -> None:
    assert looked_at(**model(lastFailureInfo={"time": time, "message": "first start"}))[0] == "ready"


@pytest.mark.parametrize(
    "changes",
    [
        {"transitionStatus": "InvalidSpec"},
        {"transitionStatus": "BlockedByFailedLoad"},
        {"states": {"targetModelState": "FailedToLoad"}},
    ],
)
def test_what_does_not_mend_itself_has_failed_with_its_reason(changes: dict[str, Any]) -> None:
    why = {"reason": "ModelLoadFailed", "exitCode": 1, "message": "cannot load"}
    state, reason = looked_at(**model(lastFailureInfo=why, **changes))
    assert state == "failed"
    assert "reason ModelLoadFailed, exitCode 1, message cannot load" in reason


def test_no_status_yet_is_waiting_and_no_service_has_failed() -> None:
    assert readiness(SERVICE, replicas=1).state == "waiting"
    assert readiness(None, replicas=1).state == "failed"
