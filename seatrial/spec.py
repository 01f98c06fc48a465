"""The model spec: `models/<model_name>/model.yaml`, all that differs from one model to the next.

Unknown keys, duplicate keys, YAML aliases, numbers that readers of YAML disagree on and values of another type are
refused, each by its path or line in the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seatrial import digests, strict_yaml
from seatrial.errors import InvalidInput, shortened
from seatrial.names import ModelName

SPEC_FILE: Final = "model.yaml"
SPEC_MAX_BYTES: Final = 256 * 1024
LFS_POINTER: Final = "version https://git-lfs.github.com/spec/"
"""How the text begins that git has in place of a file that Git LFS keeps."""

Decision = Literal["pass", "fail", "inconclusive"]
Dtype = Literal["float32", "int64", "string", "bool"]
Metric = Literal["log_loss", "brier", "roc_auc", "pr_auc", "accuracy", "f1"]
LOWER_IS_BETTER: Final[frozenset[str]] = frozenset({"log_loss", "brier"})

Share = Annotated[float, Field(ge=0, le=1)]
OpenShare = Annotated[float, Field(gt=0, lt=1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
RelativePath = Annotated[str, Field(pattern=r"^[\w-]+(\.[\w-]+)*(/[\w-]+(\.[\w-]+)*)*$", max_length=200)]
"""A file within the model's folder: no `..`, not absolute."""
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|Ki|Mi|Gi)?$")]
"""A Kubernetes quantity, like 500m, 2 or 512Mi."""


class Closed(BaseModel):
    """Frozen, strict, no unknown keys, no NaN."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Column(Closed):
    """One feature, and so one input tensor of the served model, shape (batch, 1)."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="column in the data and tensor in the request")
    dtype: Dtype = Field(description="declared type; a value of another type breaks the contract")
    nullable: bool = Field(default=False, description="whether a value may be missing: as NaN, or as an empty word")

    @model_validator(mode="after")
    def _can_be_missing(self) -> Column:
        if self.nullable and self.dtype in {"int64", "bool"}:
            raise ValueError(f"a missing {self.dtype} cannot be sent to a model; declare {self.name} as float32")
        return self


class RowCount(Closed):
    """How many rows the data may have."""

    min: int = Field(ge=1, description="fewest rows")
    max: int = Field(ge=1, description="most rows")

    @model_validator(mode="after")
    def _ordered(self) -> RowCount:
        if self.min > self.max:
            raise ValueError(f"rows.min must be at most rows.max; got {self.min} > {self.max}")
        return self


class Data(Closed):
    """The data contract: one row per question."""

    id: str = Field(description="column that identifies a row; unique, and what the split is hashed from")
    time: str = Field(description="column with the moment of the question, UTC")
    label: str = Field(description="column with what happened: 0 or 1")
    features: tuple[Column, ...] = Field(min_length=1, max_length=500, description="inputs of the model, in order")
    rows: RowCount
    holdout_share: OpenShare = Field(description="share of ids held out from training, by hash of the id")
    quarantine_max_share: Share = Field(default=0.0, description="most rows that may break the contract")
    expectations: RelativePath = Field(default="expectations.json", description="Great Expectations suite")

    @model_validator(mode="after")
    def _columns_differ(self) -> Data:
        names = [self.id, self.time, self.label, *(column.name for column in self.features)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"id, time, label and features must be different columns; named twice: {twice}")
        return self


class Resources(Closed):
    """What a pod asks for; requests equal limits."""

    cpu: Quantity = "1"
    memory: Quantity = "1Gi"
    gpus: int = Field(default=0, ge=0, le=16, description="NVIDIA GPUs")
    node_selector: dict[str, str] = Field(default_factory=dict, description="labels that the node must have")


class TrainPython(Closed):
    """Training by the owner's `train.py`: `train(rows, parameters, seed) -> seatrial.training.TrainedModel`."""

    kind: Literal["python"]
    file: RelativePath = "train.py"
    parameters: dict[str, str | int | float | bool] = Field(default_factory=dict, description="given to train()")
    seed: int = Field(default=0, ge=0, lt=2**31)
    deadline_s: Seconds = Field(default=1800, description="seconds before training is stopped")
    resources: Resources = Resources()


class TrainOnnx(Closed):
    """A model made elsewhere: no training, every gate."""

    kind: Literal["onnx"]
    file: RelativePath = "model.onnx"
    resources: Resources = Resources()


class Floor(Closed):
    """An absolute limit that holds whatever the champion does; exactly one side."""

    metric: Metric
    at_least: float | None = Field(default=None, description="None: no lower limit")
    at_most: float | None = Field(default=None, description="None: no upper limit")

    @model_validator(mode="after")
    def _one_side(self) -> Floor:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"the floor on {self.metric} needs exactly one of at_least and at_most")
        return self


class Primary(Closed):
    """The metric on which the candidate must be shown not worse than the champion."""

    metric: Metric
    margin: float = Field(gt=0, description="largest loss, in the metric's units, that still counts as not worse")


class Evaluation(Closed):
    """The evaluation gate."""

    primary: Primary
    floors: tuple[Floor, ...] = Field(min_length=1, description="absolute limits; they alone judge a first release")
    alpha: float = Field(default=0.05, gt=0, le=0.2, description="chance to pass a candidate that is at the margin")
    draws: int = Field(default=4000, ge=1000, le=100_000, description="bootstrap draws")
    class_rows_min: int = Field(
        default=30, ge=10, description="fewest held-out rows of the rarer class to judge at all"
    )
    answer_tolerance: float = Field(default=1e-5, gt=0, description="most that ONNX may differ from the framework")


class Output(Closed):
    """The tensor that callers read: float32, shape (batch, width)."""

    name: str = Field(default="probability", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    width: int = Field(default=1, ge=1, le=10_000)


class Serving(Closed):
    """How the model is served."""

    output: Output = Output()
    max_batch_size: int = Field(default=64, ge=1, le=4096, description="rows that Triton may put in one run")
    replicas: int = Field(default=1, ge=1, le=100, description="pods; production raises this to two at least")
    ready_within_s: Seconds = Field(default=120, description="seconds from apply to truly ready")
    resources: Resources = Resources(cpu="1", memory="1Gi")


class CanaryStep(Closed):
    """One step of the ramp."""

    weight: int = Field(ge=1, le=99, description="percent of traffic for the canary")
    min_s: Seconds = Field(description="seconds to watch at least")
    max_s: Seconds = Field(description="seconds after which no decision is inconclusive")

    @model_validator(mode="after")
    def _ordered(self) -> CanaryStep:
        if self.min_s > self.max_s:
            raise ValueError(f"a step's min_s must be at most its max_s; got {self.min_s} > {self.max_s}")
        return self


class Canary(Closed):
    """The canary plan: counts of both arms in, decision out."""

    steps: tuple[CanaryStep, ...] = Field(min_length=1, max_length=20, description="weights must rise")
    watch_s: Seconds = Field(default=5, description="seconds at 100 % before promotion")
    interval_s: float = Field(default=1.0, ge=0.2, le=60, description="seconds between looks")
    alpha: float = Field(default=0.05, gt=0, le=0.2, description="chance to roll back an unchanged model, whole ramp")
    ratio_tolerated: float = Field(default=1.25, ge=1, description="error-rate ratio that is still no harm")
    ratio_max: tuple[float, ...] = Field(default=(10.0, 5.0, 3.0, 2.0), description="pass: ratio shown below, per step")
    harmless_rate: float = Field(default=0.01, gt=0, lt=0.5, description="pass: canary error rate shown below")
    replay_per_s: float = Field(default=150, ge=0, le=5000, description="held-out requests replayed a second; 0: none")

    @model_validator(mode="after")
    def _rising(self) -> Canary:
        weights = [step.weight for step in self.steps]
        if weights != sorted(set(weights)):
            raise ValueError(f"the weights of the steps must rise; got {weights}")
        if any(ratio <= self.ratio_tolerated for ratio in self.ratio_max):
            raise ValueError(f"every ratio_max must be over ratio_tolerated {self.ratio_tolerated}")
        return self


class Spec(Closed):
    """A model, as its owner describes it."""

    model: ModelName = Field(description="the folder's name")
    owner: str = Field(min_length=1, max_length=200, description="whom to ask")
    description: str = Field(default="", max_length=2000, description="the question that the model answers")
    data: Data
    training: Annotated[TrainPython | TrainOnnx, Field(discriminator="kind")]
    evaluation: Evaluation
    serving: Serving = Serving()
    canary: Canary

    @property
    def digest(self) -> str:
        """By content: comments, key order and spelling of numbers in the YAML do not count."""
        return digests.of_json(self.model_dump(mode="json"))

    @property
    def policy_digest(self) -> str:
        """Of what the gates judge by: contract, evaluation and canary sections."""
        return digests.of_json(self.model_dump(mode="json", include={"data", "evaluation", "serving", "canary"}))


def parse(text: str, *, where: str = SPEC_FILE) -> Spec:
    """The spec in `text`.

    Args:
        text: YAML, at most 256 KiB.
        where: What to call it in messages.

    Raises:
        InvalidInput: Not YAML, or not a spec; every fault is listed with its path.
    """
    if len(text.encode()) > SPEC_MAX_BYTES:
        raise InvalidInput(f"{where} may have at most {SPEC_MAX_BYTES} bytes; got {len(text.encode())}")
    try:
        raw = strict_yaml.load(text)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error
    if text.startswith(LFS_POINTER):
        raise InvalidInput(f"{where} is a Git LFS pointer in place of the file: run `git lfs pull`")
    if not isinstance(raw, dict):
        raise InvalidInput(f"{where} must hold a mapping with model, owner, data …; got {type(raw).__name__}")
    try:
        return Spec.model_validate_json(digests.canonical(raw))
    except ValidationError as error:
        raise InvalidInput(f"{where}: {_faults(error)}") from error
    except (TypeError, ValueError) as error:  # a date, a set, NaN: YAML knows them, a spec does not
        raise InvalidInput(f"{where} holds a value that is neither text, number, list nor mapping: {error}") from error


def read(folder: Path) -> Spec:
    """The spec of the model in `folder`, which must bear the model's name.

    Raises:
        InvalidInput: No `model.yaml` there, a broken one, or one of another model.
    """
    path = folder / SPEC_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InvalidInput(f"{folder.name} has no {SPEC_FILE}: a model is a folder models/<name>/ with one") from error
    except (UnicodeDecodeError, OSError) as error:
        raise InvalidInput(f"{folder.name}/{SPEC_FILE} cannot be read as UTF-8 text: {shortened(error)}") from error
    spec = parse(text, where=f"{folder.name}/{SPEC_FILE}")
    if spec.model != folder.name:
        raise InvalidInput(f"{folder.name}/{SPEC_FILE} says model: {spec.model}; it must say its folder's name")
    return spec


def _faults(error: ValidationError) -> str:
    """Every fault on one line: path, what is wanted, what came."""
    lines = []
    for fault in error.errors(include_url=False):
        path = ".".join(str(part) for part in fault["loc"]) or "the spec"
        came = "" if fault["type"] in {"missing", "extra_forbidden"} else f"; got {shortened(repr(fault['input']))}"
        lines.append(f"{path}: {fault['msg'].removeprefix('Value error, ')}{came}")
    return "; ".join(lines)
