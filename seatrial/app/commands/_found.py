"""A release that ran, found by what a person calls it: a model, a model and a version, a run, or a release id."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seatrial.app.commands import _runs
from seatrial.app.commands._place import checked_model, home
from seatrial.app.views.outcome import Ended
from seatrial.errors import InvalidInput, StepError, Unavailable, shortened
from seatrial.ports import Manifest
from steps.settle_release import history

if TYPE_CHECKING:
    from seatrial.app.commands._cluster import OnCluster

NAMED_MAX: Final = 8
"""Most runs that an error names."""
LOGS: Final = "main-logs"
"""The artifact in which Argo archives what a step printed. Source: argo-workflows, workflow/common."""
_VERSION: Final = re.compile(r"v?([1-9][0-9]{0,8})\Z", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A release, wherever it ran."""

    model: str
    template: Manifest
    """The WorkflowTemplate that it came from."""
    workflow: Manifest
    ended: Ended
    """How; its outcome is `running` while it is not over."""
    kept: Callable[[str], bytes | None]
    """What a step handed on, by the artifact's key; None: it is gone. Raises StepError when it cannot be read."""
    log: Callable[[Manifest], bytes | None]
    """What a pod's node printed; None: it is gone. Raises StepError when it cannot be read."""

    @property
    def run(self) -> str:
        """Its name."""
        return str(self.workflow["metadata"]["name"])


def found(called: str, version: str | None, context: str | None, namespace: str) -> Found:
    """The release that a person means.

    Args:
        called: A model's name for its last release, a run's name, or a release id.
        version: With a model's name: the last release of this version, `v3` or `3`.
        context: Of the kubeconfig; None: this machine, whose runs are kept when the sandbox is down as well.
        namespace: Of the cluster's Workflows.

    Raises:
        InvalidInput: There is none; those that there are are named.
    """
    if context is None:
        return _here(called, version)
    from seatrial.app.commands._cluster import OnCluster  # noqa: PLC0415 - heavy

    return _there(OnCluster(context, namespace), called, version)


def chosen(runs: list[Manifest], called: str, version: str | None, models: list[str]) -> Manifest:
    """The one of `runs` that a person means.

    Raises:
        InvalidInput: None of them is; those that there are are named.
    """
    ordered = sorted(runs, key=lambda run: str(run["metadata"].get("creationTimestamp", "")))
    by_name = [run for run in ordered if called in {run["metadata"]["name"], run["metadata"].get("uid")}]
    if by_name and version is None:
        return by_name[-1]
    try:
        model = checked_model(called, models)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; known runs: {_names(ordered)}") from error
    wanted = None if version is None else _number(version)
    of_model = [run for run in ordered if _runs.is_release_of(run, model)]
    matching = [run for run in of_model if wanted is None or _version(run) == wanted]
    if not matching:
        what = model if wanted is None else f"{model} v{wanted}"
        raise InvalidInput(f"no release of {what} is kept; known runs: {_names(of_model)}")
    return matching[-1]


def _number(text: str) -> int:
    match = _VERSION.match(text)
    if match is None:
        raise InvalidInput(f"a version is written v3 or 3; got {shortened(repr(text))}")
    return int(match.group(1))


def _version(run: Manifest) -> int | None:
    try:
        return _runs.version(run)
    except StepError:  # its nodes cannot be read: it is not the one that is looked for
        return None


def _names(runs: list[Manifest]) -> str:
    """The latest ones, the last first."""
    said = []
    for run in runs[::-1][:NAMED_MAX]:
        version, model = _version(run), history.parameter(run, "MODEL_NAME")
        said.append(f"{run['metadata']['name']} ({model}{f' v{version}' if version else ''})")
    return ", ".join(said) or "none"


def _here(called: str, version: str | None) -> Found:
    from seatrial.app.commands import _running, _sandbox  # noqa: PLC0415 - heavy

    folder = home() / "runs"
    runs = [run for path in sorted(folder.glob("*/workflow.json")) if (run := _read(path))]
    workflow = chosen(runs, called, version, _sandbox.Laptop().models)
    model = history.parameter(workflow, "MODEL_NAME")
    template = _running.rendered()
    told = _running.ended(model, template, workflow, folder, seconds=_runs.seconds(workflow))

    def log(node: Manifest) -> bytes | None:
        return _content(folder / str(workflow["metadata"]["name"]) / str(node["id"]) / "main.log")

    return Found(
        model=model,
        template=template,
        workflow=workflow,
        ended=_not_over(
            workflow, told, f"it runs, or its runner was killed: `seatrial status {model}` tells who serves"
        ),
        kept=lambda key: _content(folder / key),
        log=log,
    )


def _there(place: OnCluster, called: str, version: str | None) -> Found:
    from seatrial.app.commands import _submitting  # noqa: PLC0415 - heavy

    ports = place.reached()
    runs = [run for run in (*ports.workflows.ended(), *ports.workflows.living()) if _runs.is_release(run)]
    workflow = _runs.unpacked(chosen(runs, called, version, place.models))
    model = history.parameter(workflow, "MODEL_NAME")
    name = str(workflow["metadata"]["name"])

    def log(node: Manifest) -> bytes | None:
        """From the store once the step is over, from its pod before."""
        archived = artifacts(node).get(LOGS)
        return ports.store.read(archived) if archived else place.pods.read(_runs.pod(name, node))

    return Found(
        model=model,
        template=ports.template,
        workflow=workflow,
        ended=_not_over(workflow, _submitting.ended(ports, model, workflow), "it is not over yet"),
        kept=ports.store.read,
        log=log,
    )


def artifacts(node: Manifest) -> dict[str, str]:
    """Output file of a node → key in the store, or below the folder of all runs."""
    given = (node.get("outputs") or {}).get("artifacts") or ()
    return {str(one.get("name")): str((one.get("s3") or {}).get("key", "")) for one in given}


def _not_over(workflow: Manifest, told: Ended, why: str) -> Ended:
    if _runs.phase(workflow) in _runs.OVER:
        return told
    facts = {**vars(told), "outcome": "running", "version": _version(workflow), "reasons": (why,)}
    return Ended(**facts)


def _read(path: Path) -> dict[str, Any]:
    """A run; empty when its file cannot be read, which spoils no other."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) and "metadata" in value else {}


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {shortened(error)}") from error
