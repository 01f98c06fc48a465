"""`seatrial up` and `seatrial down`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.app.commands._place import ROOT, home, known_models


def up(source: Annotated[Path, typer.Option(help="Folder or git checkout with the models.")] = ROOT) -> int:
    """Start the sandbox: object store, MLflow, gateway, control API, and what it served before.

    Everything runs on 127.0.0.1 and keeps its state in .seatrial; a sandbox that is up is found, not started twice.
    SEATRIAL_GATEWAY_PORT fixes the gateway's port.

    Example:
        seatrial up

    Exit codes: 0 up, 78 a port is taken or a program is missing, 75 a part does not come up.
    """
    from seatrial.app.commands import _console, _leftovers, _sandbox  # noqa: PLC0415

    console = _console.console()
    say = _console.say_to(console)
    source = source.expanduser().resolve()
    ports = _sandbox.started(source, say)
    _leftovers.settle_leftovers(ports, known_models(source), say)
    here = ports.sandbox
    urls = {"gateway": here.gateway_url, "MLflow": here.tracking_url, "S3": here.store_url, "API": here.control_url}
    for name, url in urls.items():
        console.print(f"{name:<8} {url}")
    return 0


def down(
    force: Annotated[bool, typer.Option("--force", help="Stop the releases that run in it, too.")] = False,  # noqa: FBT002
) -> int:
    """Stop the sandbox: no process and no port is left. What it stored stays for the next time.

    While a release runs it refuses and names it. With --force that release is stopped first, as by Ctrl-C: it puts
    traffic back and ends with 75.

    Example:
        seatrial down

    Exit codes: 0 down, 78 a release runs, 1 something could not be stopped.
    """
    from seatrial.app import sandbox  # noqa: PLC0415
    from seatrial.app.commands import _console  # noqa: PLC0415

    console = _console.console()
    sandbox.down(home(), say=lambda text: console.print(text, markup=False), force=force)
    return 0
