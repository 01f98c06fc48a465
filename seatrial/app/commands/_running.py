"""Running the release template: which one, with what, and what a finished run says."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console

from seatrial import release
from seatrial.app import runner, sandbox
from seatrial.app.commands import _ending
from seatrial.app.commands._ending import SETTLE
from seatrial.app.commands._place import TEMPLATES
from seatrial.app.commands._ports import Local, Ports
from seatrial.app.views.follow import following, from_logs
from seatrial.app.views.outcome import Ended
from seatrial.app.views.steps import Line
from seatrial.app.views.words import error_in
from seatrial.errors import InvalidInput

ROLL_OUT: Final = "roll-out"
RELEASE: Final = TEMPLATES / "release.yaml"


def release_template(model: str) -> dict[str, Any]:
    """The rendered release, in which `model` can be chosen.

    Raises:
        InvalidInput: It is not there, or was rendered before the model came.
    """
    template = rendered()
    parameters = {entry["name"]: entry for entry in template["spec"]["arguments"]["parameters"]}
    choices = parameters["MODEL_NAME"].get("enum") or []
    if model not in choices:
        raise InvalidInput(
            f"{RELEASE.name} was rendered before {model} came (it knows {', '.join(choices) or 'no model'}): "
            "run `make render` and commit what it writes"
        )
    return template


def rendered() -> dict[str, Any]:
    """The rendered release.

    Raises:
        InvalidInput: It is not there.
    """
    if not RELEASE.is_file():
        raise InvalidInput(f"{RELEASE} is missing: run `make render`")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    template: dict[str, Any] = yaml.load(RELEASE.read_bytes(), Loader=loader)  # noqa: S506 - a SafeLoader
    return template


def again(ports: Ports, model: str, version: int) -> dict[str, str]:
    """What roll-out alone takes to roll out a version that the store knows.

    Raises:
        InvalidInput: The store does not know it.
    """
    known = release.served(ports.store, model, version)
    if known is None:
        raise InvalidInput(f"no v{version} of {model} was ever deployed: `seatrial status {model}` names the latest")
    return {"version": str(version), "image": known.image, "bundle-digest": known.bundle}


def run_release(
    ports: Local,
    template: dict[str, Any],
    parameters: Mapping[str, str],
    *,
    environment: Mapping[str, Mapping[str, str]],
    console: Console,
    entrypoint: str | None = None,
) -> Ended:
    """Run it to its end, shown on `console`.

    Args:
        ports: The sandbox.
        template: The release.
        parameters: Of the workflow.
        environment: What steps find.
        console: Where it is shown; a quiet one shows nothing.
        entrypoint: The template to start; None: the whole.
    """
    model, started = parameters["MODEL_NAME"], time.monotonic()
    what = f"release {model}"
    with (
        sandbox.releasing(ports.sandbox.home, what) as told,
        following(template, from_logs(ports.runs), console, title=what) as show,
    ):
        workflow = runner.run(
            template,
            parameters=parameters,
            environment=environment,
            runs=ports.runs,
            locks=ports.locks,
            observe=show,
            entrypoint=entrypoint,
        )
        word = told()
    reports = _reports(workflow, ports.runs, ports.sandbox.home / "reports" / model)
    seconds = time.monotonic() - started
    return ended(model, template, workflow, ports.runs, seconds=seconds, reports=reports, word=word)


def ended(
    model: str,
    template: Mapping[str, Any],
    workflow: Mapping[str, Any],
    runs: Path,
    *,
    seconds: float,
    reports: tuple[Path, ...] = (),
    word: str = "",
) -> Ended:
    """How a run on this machine ended; its logs and files lie in `runs`."""
    run = str(workflow["metadata"]["name"])

    def why(step: Line) -> str:
        return error_in(runs / run / step.node_id / "main.log") or step.message

    summary = _summary(workflow, runs)
    facts = _ending.Facts(summary=summary, seconds=seconds, reports=reports, word=word)
    return _ending.ended(model, template, workflow, facts, why)


def _summary(workflow: Mapping[str, Any], runs: Path) -> dict[str, Any]:
    """What settle_release wrote; empty when it wrote nothing."""
    for node in workflow["status"]["nodes"].values():
        if node.get("templateName") != SETTLE:
            continue
        for artifact in (node.get("outputs") or {}).get("artifacts", ()):
            if artifact["name"] == "summary" and (runs / artifact["s3"]["key"]).is_file():
                found: dict[str, Any] = json.loads((runs / artifact["s3"]["key"]).read_bytes())
                return found
    return {}


def _reports(workflow: Mapping[str, Any], runs: Path, into: Path) -> tuple[Path, ...]:
    """The reports of the run's gates, copied to where a browser opens them."""
    found = []
    for node in workflow["status"]["nodes"].values():
        for artifact in (node.get("outputs") or {}).get("artifacts", ()):
            place = runs / artifact["s3"]["key"]
            if artifact["name"] == "report" and node["type"] == "Pod" and place.is_file():
                target = into / workflow["metadata"]["name"] / f"{node['templateName']}.html"
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(place, target)
                found.append(target)
    return tuple(dict.fromkeys(found))
