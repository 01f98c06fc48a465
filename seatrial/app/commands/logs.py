"""`seatrial logs`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.app.commands._place import NAMESPACE, Context, Namespace
from seatrial.errors import InvalidInput, shortened

if TYPE_CHECKING:
    from seatrial.app.commands._found import Found


def logs(  # noqa: PLR0917 - options of the command line
    called: Annotated[
        str, typer.Argument(metavar="RELEASE", help="A model (its last release), a run or a release id.")
    ],
    step: Annotated[str, typer.Argument(metavar="STEP", help="Like train-model.")],
    version: Annotated[str | None, typer.Option("--version", help="After a model: this one, like v3.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
    context: Context = None,
    namespace: Namespace = NAMESPACE,
) -> int:
    """Print what a step of a release printed, every attempt after the one before.

    On this machine it is read from the run's files; on a cluster from the store once the step is over, and from its
    pod before.

    Example:
        seatrial logs cart_abandonment train-model

    Exit codes: 0 printed, 78 no such release or step, or its log is gone; 75 the cluster or the store is away.
    """
    from seatrial.app.commands import _console, _found  # noqa: PLC0415 - heavy

    release = _found.found(called, version, context, namespace)
    attempts = of_step(release, step)
    if as_json:
        _console.print_json({"model": release.model, "run": release.run, "step": step, "attempts": attempts})
        return 0
    for number, attempt in enumerate(attempts, 1):
        if len(attempts) > 1:
            sys.stderr.write(f"· attempt {number} of {len(attempts)}: {attempt['phase']}\n")
        sys.stdout.write(attempt["log"])
    return 0


def of_step(release: Found, step: str) -> list[dict[str, Any]]:
    """What each attempt printed, the first one first.

    Raises:
        InvalidInput: The run has no such step, or what it printed is gone.
    """
    pods = [node for node in release.workflow["status"].get("nodes", {}).values() if node.get("type") == "Pod"]
    begun = sorted((node for node in pods if node.get("startedAt")), key=lambda node: str(node["startedAt"]))
    of_it = [node for node in begun if _template(node) == step]
    if not of_it:
        known = ", ".join(dict.fromkeys(_template(node) for node in begun)) or "none yet"
        raise InvalidInput(f"{release.run} ran no step {shortened(step)!r}; it ran {known}")
    found = [(node, release.log(node)) for node in of_it]
    if all(log is None for _, log in found):
        raise InvalidInput(f"what {step} of {release.run} printed is gone: its pod is deleted and nothing was archived")
    return [
        {"pod": node["id"], "phase": node.get("phase", ""), "log": (log or b"").decode(errors="replace")}
        for node, log in found
    ]


def _template(node: dict[str, Any]) -> str:
    return str(node.get("templateName") or (node.get("templateRef") or {}).get("template", ""))
