"""evaluate_model as a whole, with real ONNX models and real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fakes_release as made
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from seatrial import digests, verdict
from seatrial.adapters.onnx_runtime import OnnxRuntime
from seatrial.errors import IntegrityError, InvalidInput
from seatrial.evaluation.required import required
from seatrial.evaluation.runtime import Columns
from seatrial.verdict import Check, Verdict
from steps.evaluate_model.__main__ import run
from steps.evaluate_model.contract import Inputs, Outputs


class InProcess(OnnxRuntime):
    """Real answers, without the other processes that the integration test starts."""

    def answers_elsewhere(self, model: Path, columns: Columns, output: str) -> NDArray[np.float32]:
        return self.answers(model, columns, output)


class Wavering(InProcess):
    """Each process answers a little higher than the one before."""

    step = 1e-5
    asked = 0

    def answers_elsewhere(self, model: Path, columns: Columns, output: str) -> NDArray[np.float32]:
        self.asked += 1
        return self.answers(model, columns, output) + np.float32(self.step * self.asked)


def inputs(case: made.Case) -> Inputs:
    root = case.root
    return Inputs(
        release=root / "release.json",
        source=root / "source",
        model=root / "model",
        answers=root / "answers.npz",
        holdout_rows=root / "holdout.parquet",
        champion=root / "champion",
    )


def judged(case: made.Case, runtime: OnnxRuntime | None = None, name: str = "out") -> tuple[Outputs, Verdict]:
    scratch = case.root / name
    scratch.mkdir()
    outputs = run(inputs(case), scratch, key=made.KEY, runtime=runtime or InProcess())
    return outputs, verdict.verify(outputs.verdict.read_bytes(), [made.KEY.public_key()])


def check(found: Verdict, name: str) -> Check:
    return next(check for check in found.checks if check.name == name)


def test_a_first_release_is_judged_by_its_floors_alone_and_says_so(tmp_path: Path) -> None:
    outputs, found = judged(made.case(tmp_path / "c"))
    assert (outputs.decision, found.decision, found.reasons) == ("pass", "pass", ())
    assert "primary" not in found.required
    assert "primary" not in {c.name for c in found.checks}
    assert "no champion" in outputs.model_card.read_text()
    assert "no champion" in outputs.report.read_text()


def test_an_honest_second_version_passes_against_the_champion(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=made.Champion(made.onnx_model(price=1.4)))
    _, found = judged(case)
    assert found.decision == "pass", found.reasons
    assert {"primary", "differs"} <= set(found.required)
    assert check(found, "primary").evidence["rows"] == 1200


def test_a_worse_model_fails_the_primary_check(tmp_path: Path) -> None:
    worse = made.onnx_model(price=0.2)
    case = made.case(tmp_path / "c", model=worse, champion=made.Champion(made.onnx_model()))
    frame = made.rows().head(50)
    made.write_answers(case.root / "answers.npz", frame, made.framework_answers(frame, price=0.2))
    _, found = judged(case)
    assert check(found, "primary").decision == "fail"
    assert found.decision == "fail"


def test_too_few_rows_do_not_decide_and_the_check_says_how_many_would(tmp_path: Path) -> None:
    frame = made.rows(160)
    case = made.case(
        tmp_path / "c",
        frame=frame,
        champion=made.Champion(made.onnx_model(price=1.7)),
        evaluation={
            "floors": [{"metric": "log_loss", "at_most": 0.9}],
            "primary": {"metric": "log_loss", "margin": 0.001},
        },
    )
    _, found = judged(case)
    assert check(found, "primary").decision == "inconclusive"
    needed = check(found, "primary").evidence["rows_to_decide"]
    assert isinstance(needed, int)
    assert needed > 160
    assert found.decision == "inconclusive"


def test_the_champion_itself_is_no_candidate(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=made.Champion(made.onnx_model()))
    _, found = judged(case)
    assert check(found, "differs").decision == "fail"
    assert "do not deploy" in check(found, "differs").reason
    assert found.decision == "fail"


def test_shuffled_labels_break_the_floors_even_without_a_champion(tmp_path: Path) -> None:
    frame = made.rows()
    shuffled = frame.with_columns(again=pl.col("again").shuffle(seed=3))
    _, found = judged(made.case(tmp_path / "c", frame=shuffled))
    assert check(found, "floor_roc_auc").decision == "fail"


def test_answers_that_differ_from_the_frameworks_fail(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c")
    frame = made.rows().head(50)
    made.write_answers(case.root / "answers.npz", frame, made.framework_answers(frame) + 2e-5)
    _, found = judged(case)
    assert check(found, "answers_match").decision == "fail"
    assert check(found, "answers_match").evidence["max_abs_difference"] == pytest.approx(2e-5, rel=0.05)


def test_a_model_that_wavers_between_processes_fails(tmp_path: Path) -> None:
    _, found = judged(made.case(tmp_path / "c"), runtime=Wavering())
    assert check(found, "repeatable").decision == "fail"


def test_one_class_alone_cannot_be_judged(tmp_path: Path) -> None:
    frame = made.rows().with_columns(again=pl.lit(0, dtype=pl.Int64))
    outputs, found = judged(made.case(tmp_path / "c", frame=frame))
    assert found.decision == "inconclusive"
    assert check(found, "class_rows").evidence["label_1"] == 0
    assert "floor_roc_auc: never ran" in found.reasons
    assert "could not be decided" in outputs.report.read_text()


def test_a_champion_that_wants_a_feature_that_is_gone_is_not_compared_with(tmp_path: Path) -> None:
    other = made.onnx_model(output="chance")
    case = made.case(tmp_path / "c", champion=made.Champion(other))
    _, found = judged(case)
    assert check(found, "primary").decision == "inconclusive"
    assert "chance" in check(found, "primary").reason


def test_the_verdict_names_every_file_that_it_is_about(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=made.Champion(made.onnx_model(price=1.4)))
    _, found = judged(case)
    assert case.release.champion is not None
    assert found.judged == {
        "model": digests.of_file(case.root / "model/model.onnx"),
        "model_files": digests.of_tree(case.root / "model"),
        "holdout_rows": digests.of_file(case.root / "holdout.parquet"),
        "answers": digests.of_file(case.root / "answers.npz"),
        "champion": case.release.champion.bundle,
    }
    assert found.required == required(case.spec, champion=True)


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=made.Champion(made.onnx_model(price=1.4)))
    first, _ = judged(case)
    again, _ = judged(case, name="again")
    for name in ("verdict", "report", "model_card"):
        assert getattr(first, name).read_bytes() == getattr(again, name).read_bytes()


def test_another_champion_than_the_one_that_serves_is_refused(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=made.Champion(made.onnx_model(price=1.4)))
    (case.root / "champion/bundle/model/model.onnx").write_bytes(made.onnx_model(price=0.1))
    with pytest.raises(IntegrityError, match="differs from its manifest"):
        judged(case)


def test_a_missing_champion_is_not_a_first_release(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c", champion=made.Champion(made.onnx_model(price=1.4)))
    for path in sorted((case.root / "champion").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(IntegrityError, match=r"manifest\.json"):
        judged(case)


def test_a_spec_that_changed_since_it_was_resolved_is_refused(tmp_path: Path) -> None:
    case = made.case(tmp_path / "c")
    text = (case.root / "source/model.yaml").read_text()
    (case.root / "source/model.yaml").write_text(text.replace("tea team", "coffee team"))
    with pytest.raises(IntegrityError, match="the spec must be"):
        judged(case)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda r: (r / "model/model.onnx").write_bytes(b"no model"), "cannot be loaded"),
        (lambda r: (r / "model/model.onnx").write_bytes(made.onnx_model(output="chance")), "must give the output"),
        (lambda r: (r / "answers.npz").write_bytes(b"no archive"), "must be an .npz"),
        (lambda r: np.savez(r / "answers.npz", answer=np.zeros((2, 1))), "input__<feature>"),
        (lambda r: (r / "holdout.parquet").write_bytes(b"version https://git-lfs.github.com/spec/v1"), "Parquet"),
        (lambda r: made.rows().drop("shop").write_parquet(r / "holdout.parquet"), "need the feature 'shop'"),
        (lambda r: made.rows().drop("again").write_parquet(r / "holdout.parquet"), "need the label column 'again'"),
        (
            lambda r: made.rows().with_columns(again=pl.lit(2)).write_parquet(r / "holdout.parquet"),
            "must be 0 or 1 in every row",
        ),
        (
            lambda r: made.rows().with_columns(visits=pl.lit(None, pl.Int64)).write_parquet(r / "holdout.parquet"),
            "1200 rows have no 'visits'",
        ),
    ],
)
def test_files_that_are_not_what_they_should_be_are_named(tmp_path: Path, break_it: Any, message: str) -> None:
    case = made.case(tmp_path / "c")
    break_it(case.root)
    with pytest.raises(InvalidInput, match=message):
        judged(case)
