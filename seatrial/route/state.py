"""What an HTTPRoute says of a model: who serves, who is on trial, who answers for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Self, get_args

from pydantic import AwareDatetime, Field, ValidationError, model_validator

from seatrial.errors import InvalidInput
from seatrial.ledger import Action
from seatrial.names import ModelName, kebab, service_name, version_of
from seatrial.objects import (
    ARM_HEADER,
    GATEWAY,
    BackendReference,
    HeaderMatch,
    HTTPRoute,
    HTTPRouteSpec,
    Metadata,
    ParentReference,
    PathMatch,
    RouteMatch,
    RouteRule,
)
from seatrial.ports import Manifest
from seatrial.spec import Closed

CANARY_ARM: Final = "canary"
PREFIX: Final = "seatrial.dev/"
MODEL_LABEL: Final = "seatrial.dev/model"


class RouteState(Closed):
    """One model's route. A state that is not foreign names its versions and has weights that sum to 100."""

    model_name: ModelName
    exists: bool = False
    resource_version: str = Field(default="", description="of the object that was read; empty: not read")
    weights: dict[int, int] = Field(default_factory=dict, description="version → percent; empty: no weighted rule")
    champion: int | None = Field(default=None, description="None: the first release is not promoted yet")
    previous: int | None = Field(default=None, description="where a person's rollback goes; None: nowhere")
    candidate: int | None = Field(default=None, description="None: nobody is on trial")
    owner: str = Field(default="", description="who wrote it last: a release id or a person's name")
    watched_until: AwareDatetime | None = Field(default=None, description="UTC; None: nobody watches the candidate")
    sequence: int = Field(default=0, ge=0, description="rises by one with each change; the ledger's number")
    action: Action | None = Field(default=None, description="the last change")
    reason: str = Field(default="", description="of the last change")
    foreign: bool = Field(default=False, description="the rules are not what one of ours wrote")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.foreign:
            return self
        serving = {version for version in (self.champion, self.candidate) if version is not None}
        if self.exists != bool(serving):
            raise ValueError("a route exists exactly when a version serves or is on trial")
        if self.champion is not None and self.champion in {self.candidate, self.previous}:
            raise ValueError(f"the champion v{self.champion} cannot be candidate or previous as well")
        if self.champion is None and self.weights:
            raise ValueError(f"without a champion nobody gets traffic; got {self.weights}")
        if self.champion is not None and (set(self.weights) != serving or sum(self.weights.values()) != 100):
            raise ValueError(f"weights must sum to 100 over {sorted(serving)}; got {self.weights}")
        if any(weight < 0 for weight in self.weights.values()):
            raise ValueError(f"a weight cannot be negative; got {self.weights}")
        return self

    def but(self, **changes: Any) -> RouteState:  # noqa: ANN401 - fields of different types, checked by the model
        """This state with changes, checked anew."""
        return RouteState(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})

    def manifest(self, namespace: str) -> Manifest:
        """The HTTPRoute that says this."""
        return HTTPRoute(
            metadata=Metadata(
                name=kebab(self.model_name),
                namespace=namespace,
                labels={MODEL_LABEL: kebab(self.model_name)},
                annotations=self.annotations(),
            ),
            spec=HTTPRouteSpec(parent_refs=(ParentReference(name=GATEWAY),), rules=_rules(self, namespace)),
        ).manifest()

    def annotations(self) -> dict[str, str]:
        """All that the rules do not say; a value that is not there is an empty text, so that a patch clears it."""
        values = {
            "champion": self.champion,
            "previous": self.previous,
            "candidate": self.candidate,
            "owner": self.owner,
            "watched-until": self.watched_until and self.watched_until.isoformat(),
            "ledger-sequence": self.sequence,
            "weights": written(self.weights),
            "action": self.action,
            "reason": self.reason,
        }
        return {PREFIX + name: "" if value is None else str(value) for name, value in values.items()}


def nothing(model_name: str) -> RouteState:
    """No route: nobody serves the model."""
    return RouteState(model_name=model_name)


def from_manifest(model_name: str, manifest: Manifest | None) -> RouteState:
    """What the route says.

    Rules other than those that its own annotations call for make it foreign: its weights are then as found, which may
    be over any versions and sum to anything. The server's defaults and fields of its own do not count.
    """
    if manifest is None:
        return nothing(model_name)
    metadata: Mapping[str, Any] = manifest.get("metadata", {})
    namespace = str(metadata.get("namespace", ""))
    rules: list[dict[str, Any]] = manifest.get("spec", {}).get("rules", [])
    says = metadata.get("annotations") or {}
    try:
        ours = _from_annotations(model_name, {k.removeprefix(PREFIX): v for k, v in says.items() if v})
        foreign = [_plain(rule) for rule in rules] != [
            _plain(rule.model_dump(mode="json", by_alias=True)) for rule in _rules(ours, namespace)
        ]
    except (ValueError, ValidationError, InvalidInput):
        ours, foreign = RouteState(model_name=model_name, foreign=True), True
    found = {"weights": _weights(model_name, rules)} if foreign else {}
    return ours.but(exists=True, foreign=foreign, resource_version=str(metadata.get("resourceVersion", "")), **found)


def written(weights: Mapping[int, int]) -> str:
    """`{1: 90, 2: 10}` as `1=90,2=10`."""
    return ",".join(f"{version}={percent}" for version, percent in sorted(weights.items()))


def _from_annotations(model_name: str, says: Mapping[str, str]) -> RouteState:
    def number(name: str) -> int | None:
        return int(says[name]) if name in says else None

    pairs = (pair.split("=") for pair in says.get("weights", "").split(",") if pair)
    action = says.get("action")
    return RouteState(
        model_name=model_name,
        exists=True,
        weights={int(version): int(percent) for version, percent in pairs},
        champion=number("champion"),
        previous=number("previous"),
        candidate=number("candidate"),
        owner=says.get("owner", ""),
        watched_until=datetime.fromisoformat(says["watched-until"]) if "watched-until" in says else None,
        sequence=number("ledger-sequence") or 0,
        action=next((known for known in get_args(Action) if known == action), None),
        reason=says.get("reason", ""),
    )


def _rules(state: RouteState, namespace: str) -> tuple[RouteRule, ...]:
    """The header rule, while there is a candidate; then the weighted rule, once there is a champion."""
    path = PathMatch(value=f"/v2/models/{state.model_name}")

    def backend(version: int, weight: int) -> BackendReference:
        return BackendReference(name=f"{service_name(state.model_name, version, namespace)}-predictor", weight=weight)

    rules = []
    if state.candidate is not None:
        header = HeaderMatch(name=ARM_HEADER, value=CANARY_ARM)
        rules.append(
            RouteRule(matches=(RouteMatch(path=path, headers=(header,)),), backend_refs=(backend(state.candidate, 1),))
        )
    if state.weights:
        backends = tuple(backend(version, percent) for version, percent in sorted(state.weights.items()))
        rules.append(RouteRule(matches=(RouteMatch(path=path),), backend_refs=backends))
    return tuple(rules)


def _plain(rule: Mapping[str, Any]) -> object:
    """A rule without defaults and order of backends; any field that we never write stays and makes it differ."""
    matches = [
        {
            "path": {"type": "PathPrefix", **match.get("path", {})},
            "headers": [{"type": "Exact", **header} for header in match.get("headers") or ()],
            **{key: value for key, value in match.items() if key not in {"path", "headers"} and value},
        }
        for match in rule.get("matches", ())
    ]
    backends = [{"group": "", "kind": "Service", "weight": 1, **backend} for backend in rule.get("backendRefs", ())]
    rest = {key: value for key, value in rule.items() if key not in {"matches", "backendRefs"} and value}
    return matches, sorted(backends, key=lambda backend: str(backend.get("name"))), rest


def _weights(model_name: str, rules: list[dict[str, Any]]) -> dict[int, int]:
    """The weights of the rules without a header, as found, over this model's versions."""
    found: dict[int, int] = {}
    for rule in rules:
        if any(match.get("headers") for match in rule.get("matches", ())):
            continue
        for backend in rule.get("backendRefs", ()):
            name = str(backend.get("name", ""))
            if name.startswith(f"{kebab(model_name)}-v"):
                try:
                    found[version_of(name)] = int(backend.get("weight", 1))
                except InvalidInput:
                    continue
    return found
