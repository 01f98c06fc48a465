"""What a step's contract is made of: the only source of its Argo template, its command line and its docs.

class Inputs(Contract):
    model_name: str = Field(description="…")     a parameter: `--model-name text`
    data: Path = Field(description="…")          a file or folder: $SEATRIAL_IO/in/data

class Outputs(Contract):
    decision: Gated = Field(default="none", …)   a parameter: $SEATRIAL_IO/out/params/decision; its default is
                                                 what a reader sees when the step crashed
    report: Path = Field(description="…")        a file or folder: $SEATRIAL_IO/out/report
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

Gated = Literal["pass", "fail", "inconclusive", "none"]
"""A gate's decision as a parameter; `none`: the gate did not come to one. It never means pass."""

Need = Literal["store", "cluster", "gateway", "tracking", "signing", "trust", "registry", "source", "triton"]
"""What a step may touch: each becomes an environment source, a mount or a right, for the steps that name it only."""


class Contract(BaseModel):
    """Frozen and closed; parameters come as text and are parsed once."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def parameters(cls) -> dict[str, FieldInfo]:
        """Kebab-case name → field, of the small values."""
        return {kebab(n): f for n, f in cls.model_fields.items() if f.annotation is not Path}

    @classmethod
    def artifacts(cls) -> dict[str, FieldInfo]:
        """Kebab-case name → field, of the files and folders."""
        return {kebab(n): f for n, f in cls.model_fields.items() if f.annotation is Path}


class Step(BaseModel):
    """How a step runs, whatever the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: str
    """The step's promise in one line, for the Argo UI and the docs."""
    needs: tuple[Need, ...] = ()
    deadline_s: int
    """Seconds for one attempt."""
    cpu: str = "1"
    memory: str = "1Gi"
    retries: int = 3
    """Further attempts after exit 75, 137, 143, node errors, evictions and preemptions; nothing else is retried."""


def kebab(name: str) -> str:
    """`data_uri` → `data-uri`."""
    return name.replace("_", "-")
