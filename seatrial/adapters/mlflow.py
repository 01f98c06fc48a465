"""Training runs written down in MLflow, for people."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from seatrial.errors import InvalidInput, Unavailable, shortened

RELEASE_TAG: Final = "seatrial.release_id"
FACTS: Final = ("revision", "framework", "isolation", "model_digest", "data_digest")
"""Entries of the record that become tags."""
PARAMETER_MAX: Final = 500
"""Characters that MLflow takes as a parameter's value. Source: MLflow's default for SQL stores."""
BATCH: Final = 1000
"""Metrics in one request; MLflow's own limit."""
SETTINGS: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "7",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}
"""Nobody is told anything, and a server that is away is known to be within 15 s."""
REFUSALS: Final = frozenset({"INVALID_PARAMETER_VALUE", "BAD_REQUEST"})
"""Error codes of a record that the server will never take."""


def from_environment() -> MlflowTracking:
    """The server that MLFLOW_TRACKING_URI names."""
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        raise InvalidInput("MLFLOW_TRACKING_URI is not set: it names the MLflow server")
    return MlflowTracking(uri)


class MlflowTracking:
    """One MLflow server."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        os.environ.update(SETTINGS)

    def log(self, *, model_name: str, record: Mapping[str, Any], files: Iterable[Path]) -> str:
        """Write one run of the experiment `model_name`; a retry of the same release finds its run and completes it.

        Args:
            model_name: The experiment.
            record: The training record: release_id, parameters, losses, and `FACTS`, which become tags.
            files: Kept with the run.

        Returns:
            The run's id.

        Raises:
            InvalidInput: The server will never take such a record, like a parameter with a name that it forbids.
            Unavailable: The server does not answer, or refuses for another reason.
        """
        from mlflow.exceptions import MlflowException  # noqa: PLC0415 - a second to import; only where it is used
        from mlflow.tracking import MlflowClient  # noqa: PLC0415

        try:
            return _write(MlflowClient(tracking_uri=self._uri), model_name, record, files)
        except MlflowException as error:
            if error.error_code in REFUSALS:
                raise InvalidInput(f"MLflow does not take this training record: {shortened(error)}") from error
            raise Unavailable(f"MLflow at {self._uri} did not take the run: {shortened(error)}") from error
        except OSError as error:
            raise Unavailable(f"MLflow at {self._uri} did not take the run: {shortened(error)}") from error


def _write(client: Any, model_name: str, record: Mapping[str, Any], files: Iterable[Path]) -> str:  # noqa: ANN401
    experiment_id = _experiment(client, model_name)
    found = client.search_runs([experiment_id], f"tags.`{RELEASE_TAG}` = '{record['release_id']}'", max_results=1)
    run = found[0] if found else client.create_run(
        experiment_id, run_name=f"{model_name} v{record['version']}", tags={RELEASE_TAG: record["release_id"]}
    )  # fmt: skip
    run_id: str = run.info.run_id
    if run.info.status != "FINISHED":
        _fill(client, run_id, record, logged=run.data.metrics)
        for file in files:
            client.log_artifact(run_id, str(file))
        client.set_terminated(run_id)
    return run_id


def _experiment(client: Any, name: str) -> str:  # noqa: ANN401
    """The experiment's id; of two that make it at once, the second finds the first's."""
    from mlflow.exceptions import MlflowException  # noqa: PLC0415

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException as error:
            found = client.get_experiment_by_name(name)
            if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
                raise
    return str(found.experiment_id)


def _fill(client: Any, run_id: str, record: Mapping[str, Any], *, logged: Mapping[str, float]) -> None:  # noqa: ANN401
    """Parameters, tags and metrics; what an attempt before has logged already is not logged twice."""
    from mlflow.entities import Metric, Param, RunTag  # noqa: PLC0415

    now = int(time.time() * 1000)
    metrics = [Metric("loss", loss, now, step) for step, loss in enumerate(record["losses"])]
    metrics += [Metric("train_rows", record["rows"], now, 0), Metric("train_seconds", record["seconds"], now, 0)]
    metrics = [metric for metric in metrics if metric.key not in logged]
    client.log_batch(
        run_id,
        params=[Param(name, str(value)[:PARAMETER_MAX]) for name, value in record["parameters"].items()][:100],
        tags=[RunTag(f"seatrial.{name}", str(record[name])) for name in FACTS],
    )
    for first in range(0, len(metrics), BATCH):
        client.log_batch(run_id, metrics=metrics[first : first + BATCH])
