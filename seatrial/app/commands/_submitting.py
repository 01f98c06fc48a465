"""A release on a cluster: submitted, followed, told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from rich.console import Console

from seatrial import release
from seatrial.app.commands import _ending, _runs
from seatrial.app.commands._cluster import Remote
from seatrial.app.views.follow import Observe, following, from_outputs
from seatrial.app.views.outcome import Ended
from seatrial.errors import InvalidInput, StepError, Unavailable
from seatrial.ports import Manifest
from steps.settle_release import history

LOOK_S: Final = 1.0
"""Seconds between looks at the run."""
AWAY_S: Final = 300.0
"""Seconds without an answer after which following is given up; the release goes on."""


def arguments(template: Manifest, model: str, wished: Mapping[str, str | None]) -> dict[str, str]:
    """The parameters that are given; the rest stays with the template.

    Raises:
        InvalidInput: The form does not offer the model or a parameter, or a value would be read as a reference.
    """
    asked, given = _runs.parameters(template), {"MODEL_NAME": model}
    given |= {name: value for name, value in wished.items() if value}
    if strange := sorted(given.keys() - asked.keys()):
        raise InvalidInput(f"the cluster's WorkflowTemplate release has no parameters {strange}: it is another version")
    if braced := sorted(name for name, value in given.items() if "{{" in value):
        raise InvalidInput(f"{', '.join(braced)} holds '{{{{', which Argo would read as a reference: leave it out")
    return given


def checked_data(template: Manifest, data: str | None) -> str | None:
    """The data's address, which must be one that the cluster can read.

    Raises:
        InvalidInput: It is none, or there is none at all.
    """
    if data and not data.startswith(("s3://", "file://")):
        raise InvalidInput(
            f"--data must be an address that the cluster's steps can read, like s3://bucket/rows.parquet; got {data!r}"
        )
    if not data and not _runs.parameters(template).get("DATA_URI", {}).get("value"):
        raise InvalidInput("a release needs rows to learn from: give --data s3://bucket/rows.parquet")
    return data


def submitted(ports: Remote, model: str, given: Mapping[str, str], *, entrypoint: str | None = None) -> Manifest:
    """The Workflow as the cluster keeps it."""
    return ports.workflows.create(_runs.workflow(model, given, entrypoint=entrypoint))


def followed(ports: Remote, model: str, run: Manifest, console: Console) -> Ended:
    """Watch the run until it is over, and say how it ended.

    Raises:
        Unavailable: The API was away for long, or somebody deleted the Workflow; the release itself may go on.
    """
    name = run["metadata"]["name"]
    with following(ports.template, from_outputs(), console, title=f"release {model} ({name})") as show:
        finished = _until_over(ports, run, show)
    return ended(ports, model, finished)


def _until_over(ports: Remote, run: Manifest, show: Observe) -> Manifest:
    name, last_seen = run["metadata"]["name"], ports.clock.now()
    while True:
        try:
            found = ports.workflows.get(name)
        except Unavailable as error:
            away = (ports.clock.now() - last_seen).total_seconds()
            if away > AWAY_S:
                raise Unavailable(f"{name} cannot be followed any more ({error}); it goes on by itself") from error
        else:
            if found is None:
                raise Unavailable(f"somebody deleted the Workflow {name}: how the release ends is told by `status`")
            last_seen, shown = ports.clock.now(), _runs.unpacked(found)
            show(shown)
            if _runs.phase(shown) in _runs.OVER:
                return shown
        ports.clock.sleep(LOOK_S)


def ended(ports: Remote, model: str, run: Manifest) -> Ended:
    """How a finished run ended: in the store's words where it is seen, else in the Workflow's."""
    summary = _runs.summary(run)
    with suppress(StepError, ValueError):
        kept = ports.store.read(release.outcome_key(model, str(run["metadata"]["uid"])))
        if kept is not None and summary:
            summary = json.loads(kept)
    facts = _ending.Facts(summary=summary, seconds=_runs.seconds(run))
    return _ending.ended(model, ports.template, run, facts, lambda step: history.plain(step.message))
