"""How a release ended, by what its steps said and what the route says. What may be cleaned up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from seatrial.release import Outcome
from seatrial.route import RouteState
from steps.settle_release.history import Node

GATES_BEFORE_DEPLOY: Final = ("validate-data", "evaluate-model", "package-model")
DEPLOY, CANARY, RESOLVE, SETTLE = "deploy-model", "run-canary", "resolve-release", "settle-release"
RELEASE_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A run's uid."""
NO_PASS: Final = frozenset({"fail", "inconclusive"})


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What the route and the ledger say of this release."""

    promoted: bool = False
    """It made its version champion."""
    began: bool = False
    """Its version was put on trial."""
    frozen: bool = False
    """Its version is on trial still, in a route that somebody changed by hand: it was left as it is."""


def is_release(owner: str) -> bool:
    """Whether a route's owner is a release. Others are persons, whose watch lasts as long as they said."""
    return RELEASE_ID.fullmatch(owner) is not None


def version_of(steps: Mapping[str, Node]) -> int | None:
    """The release's version, as its steps were told it; None: it never had one of its own."""
    resolve = steps.get(RESOLVE)
    if unchanged(steps):
        return None
    told = [node.inputs.get("version", "") for name in (DEPLOY, CANARY) if (node := steps.get(name)) is not None]
    told += [resolve.outputs.get("version", "")] if resolve is not None else []
    return next((int(text) for text in told if text.isascii() and text.isdigit() and int(text) > 0), None)


def unchanged(steps: Mapping[str, Node]) -> bool:
    """Whether there was nothing to release."""
    return _said(steps, RESOLVE, "outcome") == "unchanged"


def outcome_of(steps: Mapping[str, Node], trial: Trial) -> Outcome:
    """How the release ended. The route's word that it was promoted counts for more than any step's.

    Only a step that came to its end has a say by its outputs; nothing that is missing ever means pass.
    """
    deployed, tried = _said(steps, DEPLOY, "outcome"), _said(steps, CANARY, "outcome")
    refused = any(_said(steps, gate, "decision") in NO_PASS for gate in GATES_BEFORE_DEPLOY)
    back = trial.began or CANARY in steps or _said(steps, DEPLOY, "decision") in NO_PASS
    rules: tuple[tuple[bool, Outcome], ...] = (
        (unchanged(steps), "unchanged"),
        (trial.frozen, "failed"),
        (trial.promoted or tried == "promoted", "promoted"),
        (deployed == "unchanged", "unchanged"),
        ("superseded" in {deployed, tried}, "superseded"),
        (refused, "refused"),
        (back, "rolled_back"),
    )
    return next((outcome for holds, outcome in rules if holds), "failed")


def deciding(steps: Mapping[str, Node]) -> Node | None:
    """The step that stopped the release: the first that failed or did not pass, in the order of the pipeline."""
    order = (RESOLVE, "validate-data", "train-model", "evaluate-model", "package-model", "build-image", DEPLOY, CANARY)
    for name in order:
        node = steps.get(name)
        if node is not None and (not node.succeeded or node.outputs.get("decision") in NO_PASS):
            return node
    return None


def why(node: Node, checks: Iterable[str]) -> list[str]:
    """Why the step stopped the release, in words.

    Args:
        node: The step.
        checks: Reasons of its verdict, if that could be read; each begins with the name of the check.
    """
    if not node.succeeded:
        code = "" if node.exit_code is None else f" (exit {node.exit_code})"
        return [f"{node.template}: {node.phase}{code}: {node.message or 'no message'}"]
    told = (node.outputs.get(name, "") for name in ("outcome", "reason"))
    said = ": ".join(text for text in told if text) or node.outputs["decision"]
    reasons = list(checks) or [said]
    return [f"{node.template}: {reason}" for reason in reasons]


def exit_codes(steps: Mapping[str, Node]) -> dict[str, int]:
    """Template → exit code, of the steps that failed."""
    return {name: node.exit_code for name, node in steps.items() if node.exit_code and not node.succeeded}


def in_use(state: RouteState) -> set[int]:
    """The versions whose services must stay: who serves, who served before, who is on trial."""
    named = {state.champion, state.previous, state.candidate, *state.weights}
    return {version for version in named if version is not None}


def removable(
    versions: Iterable[int], state: RouteState, *, own: int | None, ended: Iterable[int], alone: bool = False
) -> list[int]:
    """The versions whose services nobody needs any more.

    Of other releases' only those that can never serve again: older than the champion, or over. A newer one may just be
    starting.

    Args:
        versions: Those that have a service.
        state: The route, after it was put right.
        own: This release's version.
        ended: Versions whose releases have ended.
        alone: No roll-out of this model is alive, as its lock is held: nothing can be just starting.
    """
    over = set(ended)
    return sorted(
        version
        for version in set(versions) - in_use(state)
        if alone or version == own or version in over or (state.champion is not None and version < state.champion)
    )


def _said(steps: Mapping[str, Node], name: str, parameter: str) -> str:
    node = steps.get(name)
    return "" if node is None else node.outputs.get(parameter, "")
