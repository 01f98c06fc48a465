"""When a champion is the one judged against, and when a service is truly ready."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from seatrial.errors import Superseded
from seatrial.ports import Manifest
from seatrial.verdict import Verdict

CHAMPION: Final = "champion"
"""What evaluate_model calls the bundle that it judged against."""


def against(evaluated: Verdict, champion: int | None, champion_bundle: str | None) -> int | None:
    """The champion's version, when its bundle is the one that the candidate was judged against.

    Args:
        evaluated: evaluate_model's verdict.
        champion: The version that serves; None: nobody.
        champion_bundle: Digest of its bundle.

    Raises:
        Superseded: It is another one.
    """
    judged = evaluated.judged.get(CHAMPION)
    if judged != champion_bundle:
        raise Superseded(
            f"v{evaluated.version} was judged against {judged or 'no champion'}; "
            f"{f'v{champion}, {champion_bundle},' if champion else 'nobody'} serves now"
        )
    return champion


@dataclass(frozen=True)
class Readiness:
    """How far a service is."""

    state: Literal["ready", "waiting", "failed"]
    reason: str


def readiness(service: Manifest | None, *, replicas: int) -> Readiness:
    """Whether the service is truly ready: not what Ready says, which is True with no pod at all.

    It is when the status is of this generation, the model is loaded and up to date on all replicas, and nothing failed
    since it became ready. A spec that is wrong and a model that cannot load are final: they do not mend themselves.
    Source: KServe 0.20, inference_service_status.go.
    """
    if service is None:
        return Readiness("failed", "the InferenceService is gone: somebody deleted it")
    status: dict[str, Any] = service.get("status") or {}
    model = status.get("modelStatus") or {}
    states, failure = model.get("states") or {}, model.get("lastFailureInfo")
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    copies = (model.get("copies") or {}).get("totalCopies", 0)
    if model.get("transitionStatus") in {"InvalidSpec", "BlockedByFailedLoad"} or (
        states.get("targetModelState") == "FailedToLoad"
    ):
        return Readiness("failed", f"{model.get('transitionStatus')}: {_said(failure)}")
    asked = (
        (status.get("observedGeneration") == service["metadata"].get("generation"), "not seen by the controller yet"),
        (ready.get("status") == "True", _conditions(conditions.values())),
        (model.get("transitionStatus") == "UpToDate", f"the model is {model.get('transitionStatus')}"),
        (states.get("activeModelState") == "Loaded", f"the model is {states.get('activeModelState')}"),
        (copies >= replicas, f"{copies} of {replicas} copies are ready"),
        (
            not failure or _moment(failure.get("time")) <= _moment(ready.get("lastTransitionTime")),
            f"it failed after it was ready: {_said(failure)}",
        ),
    )
    lacks = next((words for holds, words in asked if not holds), None)
    return Readiness("waiting", lacks) if lacks else Readiness("ready", f"{copies} of {replicas} copies are ready")


def _said(failure: Mapping[str, Any] | None) -> str:
    if not failure:
        return "no reason given"
    words = (
        f"{name} {failure[name]}" for name in ("reason", "exitCode", "message") if failure.get(name) not in {None, ""}
    )
    return ", ".join(words)


def _conditions(conditions: Iterable[Mapping[str, Any]]) -> str:
    """Those that do not hold, with the controller's reasons."""
    words = [
        " ".join(str(condition.get(name, "")) for name in ("type", "status", "reason", "message")).strip()
        for condition in conditions
        if condition.get("status") != "True"
    ]
    return "; ".join(words) or "no conditions yet"


def _moment(text: object) -> datetime:
    """An RFC 3339 time; the beginning of time for none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return datetime.fromisoformat("0001-01-01T00:00:00+00:00")
