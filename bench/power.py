"""What the evaluation gate lets pass: honest second versions and worse ones, over many splits of an example's data.

    python -m bench.power cart_abandonment 100      # prints the table of models/cart_abandonment/README.md

Each split hashes the ids anew, so that other rows are held out; the champion is trained on what is left, the candidate
as its row says, and the checks of `seatrial.evaluation.judge` decide, as in a release. Splits on which the champion
itself misses a floor are left out: it would not serve.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl

from seatrial import spec
from seatrial.app import data as datasets
from seatrial.data.split import split
from seatrial.evaluation import checks
from seatrial.evaluation.judge import Champion, judge
from seatrial.evaluation.metrics import Floats, score
from seatrial.spec import Spec, TrainPython

ROOT: Final = Path(__file__).resolve().parents[1]
OLDER: Final = 0.8
"""Share of the training rows that were there when the champion was trained."""
DRAWS: Final = 1000
"""Fewer than in a release: their noise is small beside that of the splits."""
DIFFERENT: Final = checks.differs("a", "b")

Rows = pd.DataFrame
Change = Callable[[Rows, np.random.Generator], Rows]


@dataclass(frozen=True, kw_only=True)
class Version:
    """A candidate: how it is trained otherwise than the champion."""

    name: str
    strength: float | None = None
    """C; None: the champion's own."""
    change: Change = lambda rows, _: rows
    """What is done to its training rows."""
    older: bool = False
    """Whether the champion was trained when there were only some of today's rows."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """One version over all splits."""

    name: str
    passed: float
    """Share of the splits in which every check passed."""
    compared: float
    """Share of the splits in which the comparison with the champion passed."""
    worse_by: float
    """Mean difference in the primary metric; positive is worse."""


def sampled(share: float) -> Change:
    """Some of the rows only."""
    return lambda rows, generator: rows.iloc[generator.permutation(len(rows))[: int(share * len(rows))]]


def flipped(label: str, share: float) -> Change:
    """The labels of some rows turned round."""

    def change(rows: Rows, generator: np.random.Generator) -> Rows:
        turned = generator.random(len(rows)) < share
        return rows.assign(**{label: np.where(turned, 1 - rows[label], rows[label])})

    return change


def shuffled(label: str) -> Change:
    """The labels dealt out anew."""
    return lambda rows, generator: rows.assign(**{label: generator.permutation(rows[label].to_numpy())})


def without(*columns: str) -> Change:
    """Columns that always say the same: nothing is learnt from them."""
    return lambda rows, _: rows.assign(**{name: rows[name].iloc[0] for name in columns})


COUNTS: Final = ("events_before", "product_views", "searches", "filters", "deliberations", "minutes_before")
VERSIONS: Final[dict[str, tuple[Version, ...]]] = {
    "cart_abandonment": (
        Version(name="honest: C = 0.05", strength=0.05),
        Version(name="honest: C = 0.5", strength=0.5),
        Version(name="honest: all rows, the champion had 80 % of them", older=True),
        Version(name="honest: 80 % of the rows, the champion had another 80 %", older=True, change=sampled(OLDER)),
        Version(
            name="honest: without the user's history",
            change=without("earlier_visits", "earlier_purchases", "user_lifecycle"),
        ),
        Version(name="worse: C = 0.001", strength=0.001),
        Version(name="worse: without the visit's own counts", change=without(*COUNTS)),
        Version(name="worse: 20 % of the labels turned round", change=flipped("abandoned", 0.2)),
        Version(name="worse: labels shuffled", change=shuffled("abandoned")),
    ),
    "click_prediction": (
        Version(name="honest: C = 0.003", strength=0.003),
        Version(name="honest: C = 0.02", strength=0.02),
        Version(name="honest: all rows, the champion had 80 % of them", older=True),
        Version(name="worse: C = 0.00001", strength=0.00001),
        Version(name="worse: without the affinities", change=without("affinity", "affinity_total")),
        Version(name="worse: 1 % of the labels turned round", change=flipped("clicked", 0.01)),
        Version(name="worse: labels shuffled", change=shuffled("clicked")),
    ),
}


def measure(model: str, splits: int) -> tuple[int, list[Found]]:
    """On how many of so many splits a champion could serve, and every version of `model` over those."""
    about = spec.read(ROOT / "models" / model)
    about = about.model_copy(update={"evaluation": about.evaluation.model_copy(update={"draws": DRAWS})})
    rows = _data(model)
    told: dict[str, list[tuple[bool, bool, float]]] = {version.name: [] for version in VERSIONS[model]}
    served = 0
    for salt in range(splits):
        salted = rows.with_columns(pl.format("{}-{}", pl.lit(salt), pl.col(about.data.id)).alias(about.data.id))
        train, holdout = split(salted, by=about.data.id, holdout_share=about.data.holdout_share)
        one = _Split(model, about, train.to_pandas(), holdout.to_pandas(), salt)
        if not one.has_a_champion():
            continue
        served += 1
        for version in VERSIONS[model]:
            told[version.name].append(one.judged(version))
    return served, [_found(name, seen) for name, seen in told.items()]


@dataclass(frozen=True)
class _Split:
    model: str
    spec: Spec
    train: Rows
    holdout: Rows
    salt: int

    @cached_property
    def label(self) -> Floats:
        return self.holdout[self.spec.data.label].to_numpy(dtype=np.float64)

    @cached_property
    def champion(self) -> Floats:
        return self._answers(self.train, None)

    @cached_property
    def older(self) -> Floats:
        """A champion of which some rows of today were not there yet."""
        return self._answers(sampled(OLDER)(self.train, np.random.default_rng([self.salt, 1])), None)

    def has_a_champion(self) -> bool:
        return all(check.decision == "pass" for check in judge(self.spec, self.label, self.champion, None, seed=1))

    def judged(self, version: Version) -> tuple[bool, bool, float]:
        """Whether every check passed, whether the comparison did, and how much worse the candidate is."""
        champion = self.older if version.older else self.champion
        changed = version.change(self.train, np.random.default_rng([self.salt, 2]))
        candidate = self._answers(changed, version.strength)
        against = Champion(same=DIFFERENT, probability=champion)
        made = judge(self.spec, self.label, candidate, against, seed=self.salt)
        metric = self.spec.evaluation.primary.metric
        away = score(metric, self.label, candidate) - score(metric, self.label, champion)
        compared = next(check for check in made if check.name == "primary")
        return all(check.decision == "pass" for check in made), compared.decision == "pass", away

    def _answers(self, rows: Rows, strength: float | None) -> Floats:
        training = self.spec.training
        assert isinstance(training, TrainPython)
        parameters = training.parameters if strength is None else {**training.parameters, "C": strength}
        pipeline = _trainer(self.model).fitted(rows, parameters, training.seed)
        answers: Floats = pipeline.predict_proba(self.holdout)[:, 1].astype(np.float32).astype(np.float64)
        return answers


def _found(name: str, seen: Iterable[tuple[bool, bool, float]]) -> Found:
    passed, compared, away = (np.array(column) for column in zip(*seen, strict=True))
    return Found(name=name, passed=passed.mean(), compared=compared.mean(), worse_by=away.mean())


@cache
def _trainer(model: str) -> Any:  # noqa: ANN401 - the model's train.py
    wanted = importlib.util.spec_from_file_location(f"train_{model}", ROOT / "models" / model / "train.py")
    assert wanted is not None
    assert wanted.loader is not None
    module = importlib.util.module_from_spec(wanted)
    wanted.loader.exec_module(module)
    return module


def _data(model: str) -> pl.DataFrame:
    return pl.read_parquet(datasets.prepared(ROOT / "models" / model, home=ROOT / ".seatrial", say=print))


def main() -> None:
    """Print the table."""
    model, splits = sys.argv[1], int(sys.argv[2])
    served, versions = measure(model, splits)
    print(f"{splits} splits; on {served} of them the champion keeps the floors")
    print("| candidate | mean difference in log loss | the comparison passes | every check passes |")
    print("| --- | --- | --- | --- |")
    for found in versions:
        print(f"| {found.name} | {found.worse_by:+.5f} | {found.compared:.0%} | {found.passed:.0%} |")


if __name__ == "__main__":
    main()
