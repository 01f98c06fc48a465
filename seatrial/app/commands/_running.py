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

from seatrial.app import runner
from seatrial.app.commands._place import TEMPLATES
from seatrial.app.commands._ports import Ports
from seatrial.app.views.follow import Observe, following
from seatrial.app.views.outcome import Ended
from seatrial.app.views.steps import Line, lines
from seatrial.app.views.words import error_in
from seatrial.errors import IntegrityError, InvalidInput, Unavailable
from seatrial.release import EXIT_CODES

SETTLE: Final = "settle-release"
_PASSED_ON: Final = {InvalidInput.exit_code, Unavailable.exit_code, IntegrityError.exit_code}


def release_template(model: str) -> dict[str, Any]:
    """The rendered release, in which `model` can be chosen.

    Raises:
        InvalidInput: It is not there, or was rendered before the model came.
    """
    path = TEMPLATES / "release.yaml"
    if not path.is_file():
        raise InvalidInput(f"{path} is missing: run `make render`")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    template: dict[str, Any] = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - a SafeLoader
    parameters = {entry["name"]: entry for entry in template["spec"]["arguments"]["parameters"]}
    choices = parameters["MODEL_NAME"].get("enum") or []
    if model not in choices:
        raise InvalidInput(
            f"{path.name} was rendered before {model} came (it knows {', '.join(choices) or 'no model'}): "
            "run `make render` and commit what it writes"
        )
    return template


def run_release(
    ports: Ports,
    template: dict[str, Any],
    parameters: Mapping[str, str],
    *,
    environment: Mapping[str, Mapping[str, str]],
    console: Console,
    also: Observe | None = None,
) -> Ended:
    """Run it to its end, shown on `console`.

    Args:
        ports: The sandbox.
        template: The release.
        parameters: Of the workflow.
        environment: What steps find.
        console: Where it is shown; a quiet one shows nothing.
        also: Called at each change as well.
    """
    model, started = parameters["MODEL_NAME"], time.monotonic()
    with following(template, ports.runs, console, title=f"release {model}") as show:

        def observe(workflow: dict[str, Any]) -> None:
            show(workflow)
            if also is not None:
                also(workflow)

        workflow = runner.run(
            template,
            parameters=parameters,
            environment=environment,
            runs=ports.runs,
            locks=ports.locks,
            observe=observe,
        )
    reports = _reports(workflow, ports.runs, ports.sandbox.home / "reports" / model)
    return ended(model, template, workflow, ports.runs, seconds=time.monotonic() - started, reports=reports)


def ended(
    model: str,
    template: Mapping[str, Any],
    workflow: Mapping[str, Any],
    runs: Path,
    *,
    seconds: float,
    reports: tuple[Path, ...] = (),
) -> Ended:
    """How a finished run ended: as settle_release says; without its word it failed."""
    steps = [line for line in lines(template, workflow) if not line.group]
    run = str(workflow["metadata"]["name"])
    summary = _summary(workflow, runs)
    outcome = summary.get("outcome", "failed")
    outcome = outcome if outcome in EXIT_CODES else "failed"
    broken = [step for step in steps if step.phase in {"Failed", "Error"}]
    # settle_release is red by its word unless promoted or unchanged: without its word, it is what failed.
    failed = next((step for step in broken if step.name != SETTLE or not summary), None)
    reasons = tuple(_plain(str(reason), steps) for reason in summary.get("reasons", ()))
    if failed is not None and outcome not in {"promoted", "refused"}:
        why = error_in(runs / run / failed.node_id / "main.log") or failed.message
        reasons = (f"{failed.name}: {why}", *reasons[1:])
    return Ended(
        outcome=outcome,
        model=model,
        version=summary.get("version") or (_version(steps) if outcome != "failed" else None),
        exit_code=_exit_code(outcome, workflow, failed),
        seconds=seconds,
        reasons=reasons,
        bundle=summary.get("bundle"),
        image=summary.get("image"),
        run=run,
        reports=reports,
        notes=tuple(map(str, summary.get("notes", ()))),
    )


def _exit_code(outcome: str, workflow: Mapping[str, Any], failed: Line | None) -> int:
    """Of the outcome; a release that failed has the code of the step that did."""
    if outcome != "failed" or failed is None:
        return next(code for known, code in EXIT_CODES.items() if known == outcome)
    node = workflow["status"]["nodes"].get(failed.node_id, {})
    code = str((node.get("outputs") or {}).get("exitCode", ""))
    return int(code) if code.isdigit() and int(code) in _PASSED_ON else 1


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


def _version(steps: list[Line]) -> int | None:
    told = next((step.outputs.get("version", "") for step in steps if step.name == "resolve-release"), "")
    return int(told) if told.isdigit() and int(told) > 0 else None


def _plain(reason: str, steps: list[Line]) -> str:
    """A reason without the step that gave it: the check says more."""
    step, _, rest = reason.partition(": ")
    return rest if rest and step in {line.name for line in steps} else reason
