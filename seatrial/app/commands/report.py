"""`seatrial report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from seatrial.app.commands._place import NAMESPACE, Context, Namespace
from seatrial.errors import InvalidInput, StepError, shortened

if TYPE_CHECKING:
    from seatrial.app.commands._found import Found
    from seatrial.app.views.release_page import Gate, Told
    from steps.settle_release.history import Node

GATES: Final = ("validate-data", "evaluate-model", "package-model", "run-canary")
"""Steps that leave a verdict, in the order of the release."""


def report(  # noqa: PLR0917 - options of the command line
    called: Annotated[
        str, typer.Argument(metavar="RELEASE", help="A model (its last release), a run or a release id.")
    ],
    version: Annotated[
        str | None, typer.Argument(metavar="[VERSION]", help="After a model: this one, like v3.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page. Default: MODEL-RUN.html in this folder.")
    ] = None,
    as_json: Annotated[  # noqa: FBT002
        bool, typer.Option("--json", help="Print one JSON object; the page is written only with --output.")
    ] = False,
    context: Context = None,
    namespace: Namespace = NAMESPACE,
) -> int:
    """Write one HTML page about a release: how it ended and why, steps with times, every gate's evidence, digests.

    The page needs no network and holds no script. On this machine it is made from the run's own files, so that it works
    when the sandbox is down. What cannot be read any more is named on the page. Verdicts are shown as the gates left
    them; deployment and promotion are what checks their signatures.

    Example:
        seatrial report cart_abandonment
        seatrial report cart_abandonment v3 --output v3.html
        seatrial report release-x7k2p --context staging

    Exit codes: 0 written, 78 no such release or a place that cannot be written to, 75 the cluster is away.
    """
    from seatrial.app.commands import _console, _found  # noqa: PLC0415 - heavy
    from seatrial.app.views import release_page  # noqa: PLC0415

    release = _found.found(called, version, context, namespace)
    facts = told(release)
    place = output or (None if as_json else Path(f"{release.model}-{release.run}.html"))
    if place is not None:
        _write(place, release_page.page(facts))
    if as_json:
        _console.print_json({**facts.facts(), "page": None if place is None else str(place.resolve())})
    else:
        _console.console().print(str(place), markup=False)
    return 0


def told(release: Found) -> Told:
    """All that is known of the release."""
    from seatrial.app.views import release_page  # noqa: PLC0415
    from seatrial.app.views.steps import lines  # noqa: PLC0415
    from steps.settle_release import history  # noqa: PLC0415

    workflow = release.workflow
    ran = history.steps(workflow)
    given = (workflow.get("spec") or {}).get("arguments", {}).get("parameters") or ()
    return release_page.Told(
        ended=release.ended,
        release_id=history.uid(workflow),
        created=str(workflow["metadata"].get("creationTimestamp", "")),
        asked={str(one["name"]): str(one.get("value", "")) for one in given},
        steps=lines(release.template, workflow),
        gates=[_gate(release, ran[name]) for name in GATES if name in ran],
        release=_release(release, ran.get("resolve-release")),
    )


def _gate(release: Found, node: Node) -> Gate:
    from seatrial import verdict  # noqa: PLC0415
    from seatrial.app.views.release_page import Gate  # noqa: PLC0415

    if not node.artifacts.get("verdict"):
        left = node.message or f"the step is {node.phase.lower()}"
        return Gate(name=node.template, verdict=None, missing=f"it left no verdict: {left}")
    try:
        raw = release.kept(node.artifacts["verdict"])
        if raw is None:
            return Gate(name=node.template, verdict=None, missing=f"its verdict is gone: {node.artifacts['verdict']}")
        claimed = verdict.claimed(raw)
        page = release.kept(node.artifacts["report"]) if node.artifacts.get("report") else None
    except StepError as error:
        return Gate(name=node.template, verdict=None, missing=f"its verdict cannot be read: {error}")
    return Gate(name=node.template, verdict=claimed, page=(page or b"").decode(errors="replace"))


def _release(release: Found, node: Node | None) -> dict[str, Any]:
    """What resolve_release found out; empty when it did not come to its end or the file cannot be read."""
    key = node.artifacts.get("release") if node is not None else None
    try:
        found = json.loads((release.kept(key) if key else None) or b"{}")
    except (StepError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(place: Path, page: str) -> None:
    temporary = place.with_name(f".{place.name}.partial")
    try:
        temporary.write_text(page, encoding="utf-8")
        temporary.rename(place)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InvalidInput(f"the page cannot be written to {place}: {shortened(error)}; give --output FILE") from error
