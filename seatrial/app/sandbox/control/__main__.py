"""Starts the control API and its reconciler: `python -m seatrial.app.sandbox.control --home … --port …`."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn

from seatrial.app.sandbox.control.api import application
from seatrial.app.sandbox.control.kinds import ROUTES, Kind
from seatrial.app.sandbox.control.reconcile import Reconciler
from seatrial.app.sandbox.control.storage import Objects
from seatrial.app.sandbox.places import HOST, NAMESPACE, home_of


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    home = home_of(arguments.home)

    def changed(kind: Kind) -> None:
        if kind is ROUTES:
            reconciler.publish()  # before the writer hears that it is done

    objects = Objects(home.objects, NAMESPACE, changed=changed)
    reconciler = Reconciler(home, objects, control_port=arguments.port)

    @asynccontextmanager
    async def reconciling() -> AsyncIterator[None]:
        reconciler.start()
        yield
        reconciler.stop()

    app = application(objects, home.runs, lifespan=reconciling)
    uvicorn.run(app, host=HOST, port=arguments.port, log_level="warning", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
