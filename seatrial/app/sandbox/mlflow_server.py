"""MLflow's tracking server in this very process: `mlflow server` starts a second one, which could be orphaned."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from seatrial.app.sandbox.places import HOST


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--artifacts", type=Path, required=True)
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    arguments.artifacts.mkdir(parents=True, exist_ok=True)
    serve(f"sqlite:///{arguments.database}", arguments.artifacts.as_uri(), arguments.port, arguments.host)


def serve(store: str, artifacts: str, port: int, host: str = HOST) -> None:
    """Run the server with its backend at `store` and artifacts at `artifacts`."""
    from mlflow.server import constants  # noqa: PLC0415 - seconds to import, and only here

    os.environ[constants.BACKEND_STORE_URI_ENV_VAR] = store
    os.environ[constants.REGISTRY_STORE_URI_ENV_VAR] = store
    os.environ[constants.ARTIFACT_ROOT_ENV_VAR] = "mlflow-artifacts:/"
    os.environ[constants.ARTIFACTS_DESTINATION_ENV_VAR] = artifacts
    os.environ[constants.SERVE_ARTIFACTS_ENV_VAR] = "true"

    import uvicorn  # noqa: PLC0415
    from mlflow.server.fastapi_app import app  # noqa: PLC0415 - reads the variables above
    from mlflow.server.handlers import initialize_backend_stores  # noqa: PLC0415

    initialize_backend_stores(store, store, "mlflow-artifacts:/")
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
