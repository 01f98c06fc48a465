"""`seatrial release`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.app.commands._place import ROOT, checked_model, home, known_models, models_folder
from seatrial.errors import StepError


def release(  # noqa: PLR0917 - options of the command line
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model's name, like cart_abandonment.")] = "",
    data: Annotated[
        str | None,
        typer.Option(help="Rows: s3://…, file://… or a path. Default: what prepare.py makes."),
    ] = None,
    revision: Annotated[str, typer.Option(help="Commit, branch or tag of the source. Default: as it is.")] = "",
    reason: Annotated[str, typer.Option(help="Why, in a sentence; it goes into the ledger.")] = "",
    source: Annotated[Path, typer.Option(help="Folder or git checkout with the models.")] = ROOT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
) -> int:
    """Release a model: train, judge, package, deploy, try on traffic, promote; or go back.

    Runs workflow_templates/release.yaml on this machine, each step a process, and starts the sandbox when it is down.
    The last line says how it ended. Ctrl-C stops and puts traffic back; a second Ctrl-C ends at once.

    Example:
        seatrial release cart_abandonment --reason "new campaign"

    Exit codes: 0 promoted or unchanged, 10 refused by a gate, 11 rolled back, 12 superseded by another release,
    78 wrong input, 75 something needed is away, 76 a digest or signature does not match, 1 a bug.
    """
    source = source.expanduser().resolve()
    name = checked_model(model, known_models(source))

    from seatrial import spec  # noqa: PLC0415 - heavy, like all below
    from seatrial.app import data as datasets  # noqa: PLC0415
    from seatrial.app.commands import _console, _leftovers, _running, _sandbox  # noqa: PLC0415
    from seatrial.app.views import outcome  # noqa: PLC0415

    folder = models_folder(source) / name
    spec.read(folder)
    template = _running.release_template(name)
    uri = None if data is None else datasets.checked_uri(data)
    console = _console.console(as_json=as_json)
    say = _console.say_to(console)
    ports = _sandbox.started(source, say)
    _leftovers.settle_leftovers(ports, [name], say)
    uri = uri or datasets.kept(datasets.prepared(folder, home=home(), say=say), name, ports.store)
    ended = _running.run_release(
        ports,
        template,
        {"MODEL_NAME": name, "REVISION": revision, "DATA_URI": uri, "REASON": reason},
        environment=ports.sandbox.environment,
        console=console,
    )
    if ended.outcome == "failed":  # the exit handler may not have run: a second Ctrl-C ends everything at once
        try:
            _leftovers.settle_leftovers(ports, [name], say)
        except StepError as error:
            say(f"what this release left is not put right yet: {error}; say `seatrial settle {name}`")
    if as_json:
        _console.print_json(ended.facts())
        return ended.exit_code
    for note in ended.notes:
        say(note)
    for report in ended.reports if ended.outcome != "promoted" else ():
        say(f"report {report}")
    console.print(outcome.line(ended), markup=False)
    return ended.exit_code
