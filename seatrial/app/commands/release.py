"""`seatrial release`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.app.commands._place import ROOT, checked_model, home, known_models, models_folder
from seatrial.errors import InvalidInput, StepError


def release(  # noqa: PLR0917 - options of the command line
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model's name, like cart_abandonment.")] = "",
    data: Annotated[
        str | None,
        typer.Option(help="Rows: s3://…, file://… or a path. Default: what prepare.py makes."),
    ] = None,
    revision: Annotated[str, typer.Option(help="Commit, branch or tag of the source. Default: as it is.")] = "",
    reason: Annotated[str, typer.Option(help="Why, in a sentence; it goes into the ledger.")] = "",
    source: Annotated[Path, typer.Option(help="Folder or git checkout with the models.")] = ROOT,
    version: Annotated[
        int | None, typer.Option(min=1, help="Only roll out this version again; nothing is built.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
) -> int:
    """Release a model: train, judge, package, deploy, try on traffic, promote; or go back.

    Runs workflow_templates/release.yaml on this machine, each step a process, and starts the sandbox when it is down.
    The last line says how it ended. Ctrl-C stops and puts traffic back; a second Ctrl-C ends at once. With --version
    an earlier version is tried again on traffic; the one that serves is made whole where something of it is missing.

    Example:
        seatrial release cart_abandonment --reason "new campaign"

    Exit codes: 0 promoted or unchanged, 10 refused by a gate, 11 rolled back, 12 superseded by another release,
    78 wrong input, 75 something needed is away, 76 a digest or signature does not match, 130 stopped, 1 a bug.
    """
    source = source.expanduser().resolve()
    name = checked_model(model, known_models(source))
    if version is not None and (data is not None or revision):
        raise InvalidInput(
            "a version that is rolled out again has its data and source: leave --data and --revision out"
        )

    from seatrial import spec  # noqa: PLC0415 - heavy, like all below
    from seatrial.app import data as datasets  # noqa: PLC0415
    from seatrial.app.commands import _console, _leftovers, _running, _sandbox  # noqa: PLC0415

    folder = models_folder(source) / name
    spec.read(folder)
    template = _running.release_template(name)
    uri = None if data is None else datasets.checked_uri(data)
    console = _console.console(as_json=as_json)
    say = _console.say_to(console)
    ports = _sandbox.started(source, say)
    _leftovers.settle_leftovers(ports, [name], say)
    given = {"MODEL_NAME": name, "REVISION": revision, "REASON": reason}
    if version is None:
        uri = uri or datasets.kept(datasets.prepared(folder, home=home(), say=say), name, ports.store)
        given["DATA_URI"] = uri
    else:
        given |= _running.again(ports, name, version)
    ended = _running.run_release(
        ports,
        template,
        given,
        environment=ports.sandbox.environment,
        console=console,
        entrypoint=None if version is None else _running.ROLL_OUT,
    )
    if ended.outcome == "failed":  # the exit handler may not have run: a second Ctrl-C ends everything at once
        try:
            _leftovers.settle_leftovers(ports, [name], say)
        except StepError as error:
            say(f"what this release left is not put right yet: {error}; say `seatrial settle {name}`")
    return _console.tell_end(ended, console, as_json=as_json)
