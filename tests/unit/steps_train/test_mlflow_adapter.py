"""MLflow's adapter, as far as no server is needed; the rest is in tests/integration/test_tracking.py."""

from __future__ import annotations

import os
import time

import pytest

from seatrial.adapters import mlflow
from seatrial.errors import InvalidInput, Unavailable


def test_without_the_setting_nothing_is_tracked_and_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        if value is not None:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", value)
        with pytest.raises(InvalidInput, match="MLFLOW_TRACKING_URI is not set"):
            mlflow.from_environment()


def test_nobody_is_told_anything() -> None:
    mlflow.MlflowTracking("http://127.0.0.1:9")
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert os.environ["DO_NOT_TRACK"] == "true"


def test_a_server_that_is_away_is_known_to_be_soon() -> None:
    started = time.monotonic()
    with pytest.raises(Unavailable, match=r"MLflow at http://127\.0\.0\.1:9 did not take the run"):
        mlflow.MlflowTracking("http://127.0.0.1:9").log(model_name="tea", record={"release_id": "r1"}, files=[])
    assert time.monotonic() - started < 30
