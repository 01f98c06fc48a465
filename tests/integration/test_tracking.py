"""Training runs in a real MLflow: the sandbox's own server over HTTP, with its database in a file."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.adapters import mlflow
from seatrial.adapters.mlflow import MlflowTracking
from seatrial.errors import InvalidInput, Unavailable

pytestmark = pytest.mark.integration

READY_WITHIN_S = 90


def record(release_id: str, **changed: Any) -> dict[str, Any]:
    return {
        "release_id": release_id, "version": 3, "revision": "abc", "framework": "train.py", "isolation": "process",
        "model_digest": "sha256:m", "data_digest": "sha256:d", "parameters": {"C": 0.5, "long": "x" * 600},
        "losses": [0.7, 0.5, 0.4], "rows": 200, "seconds": 1.5, **changed,
    }  # fmt: skip


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until:
        assert server.poll() is None, "the server ended"
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/health", timeout=5).status_code == httpx.codes.OK:
                return
        time.sleep(0.2)
    pytest.fail(f"MLflow was not ready within {READY_WITHIN_S} s")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root, port = tmp_path_factory.mktemp("mlflow"), _free_port()
    command = [sys.executable, "-m", "seatrial.app.sandbox.mlflow_server", "--port", str(port)]
    command += ["--database", str(root / "m.db"), "--artifacts", str(root / "artifacts")]
    with (root / "log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, cwd=root, env={**os.environ, **mlflow.SETTINGS}
        )
        try:
            _wait(f"http://127.0.0.1:{port}", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def client(url: str) -> Any:
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - a second to import

    return MlflowClient(tracking_uri=url)


def runs(url: str, name: str) -> list[Any]:
    asked = client(url)
    return list(asked.search_runs([asked.get_experiment_by_name(name).experiment_id]))


def test_a_run_holds_the_record_its_losses_and_its_files(url: str, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text(json.dumps({"a": 1}))
    run_id = MlflowTracking(url).log(model_name="tea", record=record("r1"), files=[tmp_path / "record.json"])
    (run,) = runs(url, "tea")
    assert run.info.run_id == run_id
    assert run.info.status == "FINISHED"
    assert run.data.params == {"C": "0.5", "long": "x" * 500}
    assert run.data.metrics == {"loss": 0.4, "train_rows": 200.0, "train_seconds": 1.5}
    assert run.data.tags["seatrial.release_id"] == "r1"
    assert run.data.tags["seatrial.data_digest"] == "sha256:d"
    assert [loss.value for loss in client(url).get_metric_history(run_id, "loss")] == [0.7, 0.5, 0.4]
    assert [file.path for file in client(url).list_artifacts(run_id)] == ["record.json"]


def test_a_retry_of_the_same_release_finds_its_run(url: str) -> None:
    tracking = MlflowTracking(url)
    first = tracking.log(model_name="twice", record=record("r1"), files=[])
    assert tracking.log(model_name="twice", record=record("r1"), files=[]) == first
    assert tracking.log(model_name="twice", record=record("r2"), files=[]) != first
    assert len(runs(url, "twice")) == 2


def test_a_run_that_was_begun_and_not_finished_is_completed(url: str) -> None:
    asked = client(url)
    begun = asked.create_run(asked.create_experiment("begun"), tags={mlflow.RELEASE_TAG: "r1"}).info.run_id
    asked.log_metric(begun, "loss", 0.7, step=0)
    assert MlflowTracking(url).log(model_name="begun", record=record("r1"), files=[]) == begun
    (run,) = runs(url, "begun")
    assert (run.info.status, run.data.metrics["train_rows"]) == ("FINISHED", 200.0)
    assert len(asked.get_metric_history(begun, "loss")) == 1


def test_more_losses_than_one_request_takes_are_all_written(url: str) -> None:
    losses = [1 / (step + 1) for step in range(2500)]
    run_id = MlflowTracking(url).log(model_name="long", record=record("r1", losses=losses), files=[])
    assert len(client(url).get_metric_history(run_id, "loss")) == 2500


def test_a_record_that_the_server_will_never_take_is_the_owners_to_mend(url: str) -> None:
    with pytest.raises(InvalidInput, match="does not take this training record"):
        MlflowTracking(url).log(model_name="bad", record=record("r1", parameters={"a=b$": 1}), files=[])


def test_a_server_that_does_not_answer_is_known_to_be_away(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        with pytest.raises(Unavailable, match="did not take the run"):
            MlflowTracking(f"http://127.0.0.1:{silent.getsockname()[1]}").log(
                model_name="tea", record=record("r1"), files=[]
            )
    assert time.monotonic() - started < 30
