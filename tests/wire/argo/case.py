"""A case: one file with WorkflowTemplates and the Workflows that are submitted, as the API server takes them.

What is done to a Workflow besides submitting it stands in its annotations; a node is named `<workflow>.<task>…`:
`submit-once-running`: submit it once that node runs. `shutdown`: Stop or Terminate, once the node named by
`shutdown-once-running` runs or the one named by `shutdown-once-waiting` waits for a lock. `hangs`: it never ends.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parent
CASES: Final = FOLDER / "cases"
RECORDINGS: Final = FOLDER / "recordings"
ANNOTATION: Final = "wire.seatrial/"


@dataclass(frozen=True)
class Submission:
    """A Workflow of a case."""

    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """The Workflow's name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def template(self) -> str:
        """The WorkflowTemplate that it is made from."""
        return str(self.manifest["spec"]["workflowTemplateRef"]["name"])

    @property
    def entrypoint(self) -> str | None:
        """Where it starts, if not where its template says."""
        entrypoint: str | None = self.manifest["spec"].get("entrypoint")
        return entrypoint

    @property
    def parameters(self) -> dict[str, str]:
        """What is given with it."""
        given = self.manifest["spec"].get("arguments", {}).get("parameters", [])
        return {parameter["name"]: parameter["value"] for parameter in given}

    def annotation(self, name: str) -> str:
        """One of ours; empty: it is not there."""
        return str(self.manifest["metadata"].get("annotations", {}).get(ANNOTATION + name, ""))


@dataclass(frozen=True)
class Case:
    """What one file holds."""

    name: str
    rule: str
    templates: dict[str, dict[str, Any]]
    submissions: tuple[Submission, ...]

    @property
    def has_deadline(self) -> bool:
        """Whether it matters how fast its pods start."""
        return "activeDeadlineSeconds" in str(self.templates)

    @property
    def recording(self) -> Path:
        """What the real controller made of it."""
        return RECORDINGS / f"{self.name}.json"


def read(path: Path) -> Case:
    """The case in a file; its rule is the comment on top."""
    text = path.read_text(encoding="utf-8")
    documents = list(yaml.safe_load_all(text))
    templates = {d["metadata"]["name"]: d for d in documents if d["kind"] == "WorkflowTemplate"}
    submissions = tuple(Submission(d) for d in documents if d["kind"] == "Workflow")
    comment = itertools.takewhile(lambda line: line.startswith("# "), text.splitlines())
    rule = " ".join(line.removeprefix("# ") for line in comment)
    return Case(path.stem, rule, templates, submissions)


def all_cases() -> list[Case]:
    """Every case, by name."""
    return [read(path) for path in sorted(CASES.glob("*.yaml"))]
