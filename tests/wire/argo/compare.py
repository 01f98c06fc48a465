"""Two runs of a case side by side, and what may differ between them: `differences.yaml`, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from .case import FOLDER
from .facts import Facts

ABSENT: Final = "(absent)"


@dataclass(frozen=True)
class Allowed:
    """What may differ in one case.

    Args:
        refused: What the runner says instead of running it; empty: it runs.
        differences: Path → the controller's value and the runner's.
    """

    refused: str
    differences: Mapping[str, tuple[Any, Any]]


def allowed() -> dict[str, Allowed]:
    """Case → what may differ.

    Raises:
        ValueError: An entry gives no reason.
    """
    listed = yaml.safe_load((FOLDER / "differences.yaml").read_text(encoding="utf-8"))
    found: dict[str, Allowed] = {}
    for entry in listed:
        if not entry.get("why"):
            raise ValueError(f"no reason is given for {entry}")
        for name, places in entry["cases"].items():
            known = found.get(name, Allowed("", {}))
            if isinstance(places, str):
                found[name] = Allowed(places, known.differences)
                continue
            pairs = {path: (argo, runner) for path, (argo, runner) in places.items()}
            found[name] = Allowed(known.refused, {**known.differences, **pairs})
    return found


def differences(recorded: Facts, replayed: Facts) -> dict[str, tuple[Any, Any]]:
    """Path → what stands there in each."""
    left, right = _flat(recorded, ""), _flat(replayed, "")
    paths = sorted(left.keys() | right.keys())
    pairs = {path: (left.get(path, ABSENT), right.get(path, ABSENT)) for path in paths}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def _flat(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {key: leaf for name in value for key, leaf in _flat(value[name], f"{path}/{name}".lstrip("/")).items()}
