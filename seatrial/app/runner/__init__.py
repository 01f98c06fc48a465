"""Runs a rendered WorkflowTemplate on this machine, each step a process, with Argo's own rules."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from seatrial.app.runner import link, manifest
from seatrial.app.runner.check import check
from seatrial.app.runner.commands import Commands
from seatrial.app.runner.commands import commands as known_commands
from seatrial.app.runner.locks import Locks
from seatrial.app.runner.loop import Loop
from seatrial.app.runner.plan import Run
from seatrial.errors import InvalidInput, shortened

__all__ = ["run"]

NAMESPACE: Final = "seatrial"
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' own: no vowels, nothing that looks like something else."""


def run(
    template: dict[str, Any],
    *,
    parameters: Mapping[str, str],
    environment: Mapping[str, Mapping[str, str]],
    runs: Path,
    locks: Path,
    observe: Callable[[dict[str, Any]], None] | None = None,
    entrypoint: str | None = None,
    commands: Commands | None = None,
    libraries: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run `template` to its end.

    SIGINT and SIGTERM stop it as `argo stop` does: running steps get SIGTERM, the exit handler runs, the phase is
    Failed. A second SIGINT terminates: SIGKILL, no exit handler.

    Args:
        template: The rendered WorkflowTemplate.
        parameters: Of the workflow; those without a value in the template must be given.
        environment: ConfigMap or Secret → its keys and values; a step gets those that its template names.
        runs: Folder of all runs. `runs/<name>/workflow.json` is written at each change; a node's log is at
            `runs/<name>/<node id>/main.log`, its files under `runs/<name>/<node id>/io/`.
        locks: Folder of the locks; runs that share it exclude each other by the template's mutexes.
        observe: Gets the Workflow at each change.
        entrypoint: Start this template instead; its inputs come from `parameters`.
        commands: Image → program; None: the steps and the builder.
        libraries: Name → rendered WorkflowTemplate: those whose templates a `templateRef` may call.

    Returns:
        The finished Workflow: an Argo Workflow object with status.phase and status.nodes.

    Raises:
        InvalidInput: The template holds what is not known here, each by its path; or a parameter cannot be used.
    """
    commands = known_commands() if commands is None else commands
    read = link.linked(template, libraries or {})
    start = entrypoint or read.spec.entrypoint
    check(read, entrypoint=start, commands=commands, environment=environment)
    given = _parameters(read, start, parameters)
    runs = runs.resolve()
    name = _new_folder(runs, read.metadata.name)
    planned = Run(
        manifest=read,
        name=name,
        uid=str(uuid.uuid4()),
        namespace=read.metadata.namespace or NAMESPACE,
        parameters=given,
        entrypoint=start,
        created=time.time(),
    )
    return Loop(planned, commands, environment, runs, Locks(locks, name), observe).until_over()


def _parameters(read: manifest.Manifest, entrypoint: str, given: Mapping[str, str]) -> dict[str, str]:
    """Given values over the template's own.

    Raises:
        InvalidInput: One is missing, not asked for, or holds `{{`, which would be read as a reference.
    """
    asked = {parameter.name: parameter.value for parameter in read.spec.arguments.parameters}
    started = read.template(entrypoint)
    extra = {p.name: p.value for p in started.inputs.parameters} if entrypoint != read.spec.entrypoint else {}
    if strange := sorted(given.keys() - asked.keys() - extra.keys()):
        raise InvalidInput(f"{read.metadata.name} has no parameters {strange}; it has {sorted({**asked, **extra})}")
    merged = {**asked, **extra, **given}
    if missing := sorted(name for name, value in merged.items() if value is None):
        raise InvalidInput(f"{read.metadata.name} needs the parameters {missing}")
    braced = sorted(name for name, value in given.items() if "{{" in value)
    if braced:
        raise InvalidInput(f"parameters {braced} hold '{{{{', which Argo would read as a reference: leave it out")
    if started.inputs.artifacts:
        raise InvalidInput(f"{entrypoint} takes files and cannot be started alone")
    return {name: value for name, value in merged.items() if value is not None}


def _new_folder(runs: Path, prefix: str) -> str:
    """The name of a new run, whose folder is made."""
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        name = f"{prefix}-{''.join(secrets.choice(SUFFIX_ALPHABET) for _ in range(5))}"
        try:
            (runs / name).mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise InvalidInput(f"runs are kept in {shortened(runs)}, which cannot be written: {error}") from error
        return name
