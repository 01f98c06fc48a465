"""Training runs written down in MLflow, for people."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from seatrial.errors import InvalidInput, Unavailable, shortened

RELEASE_TAG: Final = "seatrial.release_id"
PARAMETER_MAX: Final = 500
"""Characters that MLflow takes as a parameter's value. Source: MLflow's default for SQL stores."""


def from_environment() -> MlflowTracking:
    """The server that MLFLOW_TRACKING_URI names."""
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        raise InvalidInput("MLFLOW_TRACKING_URI is not set: it names the MLflow server")
    os.environ.update(
        MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true",
        MLFLOW_HTTP_REQUEST_TIMEOUT="10", MLFLOW_HTTP_REQUEST_MAX_RETRIES="2",
    )  # fmt: skip
    return MlflowTracking(uri)


class MlflowTracking:
    """One MLflow server."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def log(self, *, model_name: str, record: Mapping[str, Any], files: Iterable[Path]) -> str:
        """Write one run of the experiment `model_name`; a retry of the same release finds its run again.

        Args:
            model_name: The experiment.
            record: The training record: release_id, parameters, metrics, losses, and facts that become tags.
            files: Kept with the run.

        Returns:
            The run's id.

        Raises:
            Unavailable: The server does not answer, or refuses.
        """
        from mlflow.exceptions import MlflowException  # noqa: PLC0415 - a second to import; only where it is used
        from mlflow.tracking import MlflowClient  # noqa: PLC0415

        client = MlflowClient(tracking_uri=self._uri)
        try:
            return _write(client, model_name, record, files)
        except (MlflowException, OSError) as error:
            raise Unavailable(f"MLflow at {self._uri} did not take the run: {shortened(error)}") from error


def _write(client: Any, model_name: str, record: Mapping[str, Any], files: Iterable[Path]) -> str:  # noqa: ANN401
    experiment = client.get_experiment_by_name(model_name)
    experiment_id = client.create_experiment(model_name) if experiment is None else experiment.experiment_id
    found = client.search_runs([experiment_id], f"tags.`{RELEASE_TAG}` = '{record['release_id']}'", max_results=1)
    run = found[0] if found else client.create_run(experiment_id, run_name=f"{model_name} v{record['version']}")
    run_id: str = run.info.run_id
    client.set_tag(run_id, RELEASE_TAG, record["release_id"])
    for name in ("revision", "framework", "isolation", "model_digest"):
        client.set_tag(run_id, f"seatrial.{name}", record[name])
    if not found:
        for name, value in record["parameters"].items():
            client.log_param(run_id, name, str(value)[:PARAMETER_MAX])
        for step, loss in enumerate(record["losses"]):
            client.log_metric(run_id, "loss", loss, step=step)
        client.log_metric(run_id, "train_rows", record["rows"])
        client.log_metric(run_id, "train_seconds", record["seconds"])
    for file in files:
        client.log_artifact(run_id, str(file))
    client.set_terminated(run_id)
    return run_id
