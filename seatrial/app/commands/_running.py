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
from seatrial.app.commands._place import TEMPLATES
from seatrial.app.commands._ports import Local, Ports
from seatrial.app.views.follow import following
from seatrial.app.views.outcome import Ended
from seatrial.app.views.steps import Line, lines
from seatrial.app.views.words import error_in
from seatrial.errors import IntegrityError, InvalidInput, Unavailable

SETTLE: Final = "settle-release"
ROLL_OUT: Final = "roll-out"
INTERRUPTED: Final = 130
"""As shells say it of what Ctrl-C ended."""
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
        following(template, ports.runs, console, title=what) as show,
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
    """How a finished run ended: as settle_release says; without its word it failed.

    Args:
        model: What was released.
        template: The release.
        workflow: The run.
        runs: Where its logs and files are.
        seconds: It took so long.
        reports: Of its gates.
        word: Why it was stopped, where that was not a person's Ctrl-C.
    """
    steps = [line for line in lines(template, workflow) if not line.group]
    run = str(workflow["metadata"]["name"])
    summary = _summary(workflow, runs)
    outcome = summary.get("outcome", "failed")
    outcome = outcome if outcome in release.EXIT_CODES else "failed"
    broken = [step for step in steps if step.phase in {"Failed", "Error"}]
    # settle_release is red by its word unless promoted or unchanged: without its word, it is what failed.
    failed = next((step for step in broken if step.name != SETTLE or not summary), None)
    reasons = tuple(_plain(str(reason), steps) for reason in summary.get("reasons", ()))
    if failed is not None and outcome not in {"promoted", "refused"}:
        why = error_in(runs / run / failed.node_id / "main.log") or failed.message
        reasons = (f"{failed.name}: {why}", *reasons[1:])
    stopped = bool(workflow.get("spec", {}).get("shutdown"))
    if stopped and outcome not in {"promoted", "refused"}:
        where = f" while {failed.name} ran" if failed is not None else ""
        reasons = (f"{word or 'it was stopped'}{where}", *reasons[1:])
    return Ended(
        outcome=outcome,
        model=model,
        version=summary.get("version") or (_version(steps) if outcome != "failed" else None),
        exit_code=_stopped_code(word) if stopped and outcome == "failed" else _exit_code(outcome, workflow, failed),
        seconds=seconds,
        reasons=reasons,
        bundle=summary.get("bundle"),
        image=summary.get("image"),
        run=run,
        reports=reports,
        notes=tuple(map(str, summary.get("notes", ()))),
    )


def _stopped_code(word: str) -> int:
    """Of a release that was stopped: its sandbox is away, or a person said Ctrl-C."""
    return Unavailable.exit_code if word else INTERRUPTED


def _exit_code(outcome: str, workflow: Mapping[str, Any], failed: Line | None) -> int:
    """Of the outcome; a release that failed has the code of the step that did."""
    if outcome != "failed" or failed is None:
        return next(code for known, code in release.EXIT_CODES.items() if known == outcome)
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
