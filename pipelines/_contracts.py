"""The steps as their contracts describe them; nothing else of a step is known here."""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import dataclass
from typing import Final

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import steps
from seatrial.errors import StepError
from steps._contract import Contract, Need, Step, kebab

ORDER: Final = (
    "resolve_release",
    "validate_data",
    "train_model",
    "evaluate_model",
    "package_model",
    "deploy_model",
    "run_canary",
    "settle_release",
)
"""The steps as a release meets them: the order in documents."""


@dataclass(frozen=True)
class Contracted:
    """One step: its package's name and what its contract says."""

    package: str
    step: Step
    inputs: type[Contract]
    outputs: type[Contract]
    mode: str = ""
    """The word before its arguments, where a package holds a second step; empty: its own."""

    @property
    def name(self) -> str:
        """The name of its template and task: `evaluate-model`."""
        return kebab(self.mode or self.package)

    @property
    def image(self) -> str:
        """The name of its image: its package's."""
        return kebab(self.package)

    def needs(self, need: Need) -> bool:
        """Whether it may touch what `need` stands for."""
        return need in self.step.needs


def contract(package: str) -> Contracted:
    """The contract of one step."""
    module = importlib.import_module(f"steps.{package}.contract")
    return Contracted(package=package, step=module.STEP, inputs=module.Inputs, outputs=module.Outputs)


def janitor() -> Contracted:
    """The step that no release has: the sweep over all models, in settle_release's image."""
    module = importlib.import_module("steps.settle_release.sweep_contract")
    return Contracted(
        package="settle_release", step=module.STEP, inputs=module.Inputs, outputs=module.Outputs, mode="settle"
    )


def contracts() -> list[Contracted]:
    """Every step's contract, in `ORDER`.

    Raises:
        StepError: A package in steps/ has no place in `ORDER`, or the other way round.
    """
    found = {module.name for module in pkgutil.iter_modules(steps.__path__) if module.ispkg}
    if found != set(ORDER):
        raise StepError(f"pipelines/_contracts.py must order every step; steps/ has {sorted(found)}, ORDER {ORDER}")
    return [contract(package) for package in ORDER]


def is_folder(field: FieldInfo) -> bool:
    """Whether a file of a contract is a folder: its description says so first."""
    return (field.description or "").startswith("folder")


def default_text(field: FieldInfo) -> str:
    """The default of an output parameter as the text that a step would write.

    Raises:
        StepError: It has none: a crashed step would leave an unreadable run.
    """
    if field.default is PydanticUndefined:
        raise StepError(f"every output parameter needs a default; {field.description!r} has none")
    return field.default if isinstance(field.default, str) else json.dumps(field.default)
