"""What evaluate_model makes of its input files, and what it shows."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seatrial import bundle, digests
from seatrial.bundle import Bundle
from seatrial.errors import IntegrityError, InvalidInput, shortened
from seatrial.evaluation import checks, curves
from seatrial.evaluation.judge import Champion
from seatrial.evaluation.metrics import Floats, score
from seatrial.evaluation.runtime import Columns, Runtime
from seatrial.release import Release
from seatrial.spec import Metric, Spec
from steps.evaluate_model.contract import Inputs

METRICS: tuple[Metric, ...] = ("log_loss", "brier", "roc_auc", "pr_auc", "accuracy", "f1")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Labels and answers on the held-out rows, each of shape (rows,)."""

    label: Floats
    candidate: Floats
    champion: Floats | None

    @property
    def answers(self) -> dict[str, Floats]:
        """Model → answers, of the models whose answers are all numbers."""
        given = {"candidate": self.candidate, "champion": self.champion}
        return {name: values for name, values in given.items() if values is not None and np.isfinite(values).all()}


def champion_bundle(folder: Path, release: Release) -> Bundle | None:
    """The champion's bundle, checked file by file; None on a first release.

    Raises:
        IntegrityError: It is not the bundle that serves, or one is there and none serves.
    """
    root = folder / "bundle"
    if release.champion is None:
        if root.exists():
            raise IntegrityError("the release has no champion, but a champion's bundle was handed in")
        return None
    found = bundle.read(root)
    if found.digest != release.champion.bundle:
        raise IntegrityError(f"the champion's bundle must be {release.champion.bundle}; got {found.digest}")
    return found


def compare(inputs: Inputs, spec: Spec, columns: Columns, runtime: Runtime) -> Champion:
    """The champion on the same rows; one that cannot answer them is not compared with."""
    model = inputs.champion / "bundle" / bundle.MODEL_FOLDER
    same = checks.differs(digests.of_tree(inputs.model), digests.of_tree(model))
    try:
        answers = runtime.answers(model / "model.onnx", columns, spec.serving.output.name)
    except InvalidInput as error:
        return Champion(same=same, probability=None, why_not=str(error))
    return Champion(same=same, probability=probabilities(answers))


def probabilities(answers: NDArray[np.float32]) -> Floats:
    """The probability of label 1, shape (rows,): the last column of one or two.

    Raises:
        InvalidInput: The output is wider: then it is no answer to a yes-or-no question.
    """
    if answers.ndim != 2 or answers.shape[1] > 2:
        raise InvalidInput(f"the output must be one or two wide to be judged as a probability; got {answers.shape}")
    return answers[:, -1].astype(np.float64)


def parity(answers: Path, spec: Spec) -> tuple[Columns, NDArray[Any]]:
    """Parity rows and the framework's own answers to them, shape (rows, width), as train_model wrote them.

    Raises:
        InvalidInput: The file is no such archive, or lacks a feature or the answers.
    """
    try:
        with np.load(answers, allow_pickle=False) as archive:
            columns = {f.name: archive[f"input__{f.name}"].reshape(-1, 1) for f in spec.data.features}
            own = archive["answer"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidInput(
            f"the framework's answers must be an .npz with input__<feature> for every feature and answer: "
            f"{shortened(error)}"
        ) from error
    return columns, own.reshape(len(own), -1)


def judged(inputs: Inputs, champion: Bundle | None) -> dict[str, str]:
    """Digests of all that the verdict is about; `model_files` covers external data beside model.onnx."""
    known = {
        "model": digests.of_file(inputs.model / "model.onnx"),
        "model_files": digests.of_tree(inputs.model),
        "holdout_rows": digests.of_file(inputs.holdout_rows),
        "answers": digests.of_file(inputs.answers),
    }
    return known if champion is None else {**known, "champion": champion.digest}


def seed_of(digest: str) -> int:
    """The bootstrap's seed: fixed by the held-out rows, so nobody can choose a lucky one."""
    return int(digest.removeprefix("sha256:")[:12], 16)


def scores(measured: Measured) -> dict[str, dict[str, float]]:
    """Metric → model → value, on the held-out rows."""
    return {
        metric: {name: score(metric, measured.label, values) for name, values in measured.answers.items()}
        for metric in METRICS
    }


def sections(measured: Measured) -> list[tuple[str, str]]:
    """What the report shows beside the checks."""
    found = measured.answers
    if not found or len(np.unique(measured.label)) < 2:
        return []
    head = "".join(f"<th>{escape(name)}" for name in found)
    body = "".join(
        f"<tr><td>{metric}{''.join(f'<td>{value:.5g}' for value in values.values())}</tr>"
        for metric, values in scores(measured).items()
    )
    rows = f"{len(measured.label)} rows, {int(measured.label.sum())} with label 1"
    champion = "" if measured.champion is not None else " There is no champion to compare with: the floors judge alone."
    return [
        ("On the held-out rows", f"<p>{rows}.{champion}</p><table><tr><th>metric{head}</tr>{body}</table>"),
        ("Curves", curves.roc(measured.label, found) + curves.calibration(measured.label, found)),
    ]
