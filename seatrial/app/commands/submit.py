"""`seatrial submit`."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial.app.commands._place import NAMESPACE, Namespace, checked_model


def submit(  # noqa: PLR0917 - options of the command line
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model's name, like cart_abandonment.")],
    context: Annotated[str, typer.Option("--context", metavar="CLUSTER", help="A context of the kubeconfig.")],
    data: Annotated[str | None, typer.Option(help="Rows, where the cluster can read them: s3://…")] = None,
    revision: Annotated[str, typer.Option(help="Commit, branch or tag of the source. Default: as it is there.")] = "",
    reason: Annotated[str, typer.Option(help="Why, in a sentence; it goes into the ledger.")] = "",
    version: Annotated[
        int | None, typer.Option(min=1, help="Only roll out this version again; nothing is built.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Watch it until it has ended.")] = True,  # noqa: FBT002
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
    namespace: Namespace = NAMESPACE,
) -> int:
    """Release a model on a cluster, and watch it as `release` does on this machine.

    Makes a Workflow from the cluster's WorkflowTemplate `release`, with your own rights. Ctrl-C ends the watching, not
    the release.

    Example:
        seatrial submit cart_abandonment --context staging --data s3://shop/visits.parquet

    Exit codes: 0 promoted, unchanged, or submitted with --no-follow; 10 refused by a gate, 11 rolled back, 12
    superseded by another release, 78 wrong input, 75 something needed is away, 76 a digest or signature does not match,
    130 stopped or not watched any more, 1 a bug.
    """
    from seatrial.app.commands import _cluster, _console, _running, _submitting  # noqa: PLC0415

    place = _cluster.OnCluster(context, namespace)
    ports = place.reached()
    checked_model(model, place.choices)
    wished = {"REVISION": revision, "REASON": reason}
    entrypoint, again = None, {}
    if version is None:
        wished["DATA_URI"] = _submitting.checked_data(ports.template, data) or ""
    else:
        entrypoint, again = _running.ROLL_OUT, _running.again(ports, model, version)
    given = _submitting.arguments(ports.template, model, wished) | again
    console = _console.console(as_json=as_json)
    run = _submitting.submitted(ports, model, given, entrypoint=entrypoint)
    name = run["metadata"]["name"]
    _console.say_to(console)(f"submitted {name} to {place.name}")
    if not follow:
        if as_json:
            _console.print_json({"model": model, "run": name, "release_id": run["metadata"]["uid"]})
        return 0
    try:
        ended = _submitting.followed(ports, model, run, console)
    except KeyboardInterrupt:
        _console.say_to(console)(f"{name} is not watched any more and goes on; `seatrial status {model}` tells of it")
        return 130
    return _console.tell_end(ended, console, as_json=as_json)
