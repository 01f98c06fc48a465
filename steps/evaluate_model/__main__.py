"""evaluate_model: candidate and champion answer the same held-out rows; the verdict, the report and the model card.

parity rows     ONNX against the framework's own answers
sample          three processes of their own against each other
held-out rows   floors, and the paired bootstrap against the champion
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seatrial import digests, report, verdict
from seatrial.adapters import rows
from seatrial.evaluation import checks
from seatrial.evaluation.card import card
from seatrial.evaluation.judge import judge
from seatrial.evaluation.required import required
from seatrial.evaluation.runtime import Columns, Runtime
from seatrial.release import read as read_release
from seatrial.spec import Spec
from seatrial.verdict import Check, Verdict
from steps import _runtime, _source
from steps.evaluate_model import logic
from steps.evaluate_model.contract import STEP, Inputs, Outputs

PROCESSES: Final = 3
SAMPLE_ROWS: Final = 500
"""Rows that each of the processes answers."""


def run(inputs: Inputs, scratch: Path, *, key: Ed25519PrivateKey, runtime: Runtime) -> Outputs:
    """Judge the candidate.

    Args:
        inputs: See the contract.
        scratch: Folder for the outputs.
        key: Signs the verdict.
        runtime: Runs both models.
    """
    release = read_release(inputs.release)
    spec = _source.spec_of(inputs.source, release)
    champion = logic.champion_bundle(inputs.champion, release)
    held_out = rows.read(inputs.holdout_rows)
    columns, label = rows.columns(held_out, spec.data.features), rows.labels(held_out, spec.data.label)
    answers = logic.probabilities(runtime.answers(inputs.model / "model.onnx", columns, spec.serving.output.name))
    compared = None if champion is None else logic.compare(inputs, spec, columns, runtime)
    seed = logic.seed_of(digests.of_file(inputs.holdout_rows))
    made = (*_technical(inputs, spec, columns, runtime), *judge(spec, label, answers, compared, seed=seed))
    concluded = verdict.conclude(
        "evaluate_model",
        release,
        spec,
        required=required(spec, champion=champion is not None),
        checks=made,
        judged=logic.judged(inputs, champion),
    )
    measured = logic.Measured(
        label=label, candidate=answers, champion=None if compared is None else compared.probability
    )
    sheet = card(spec, release, concluded, logic.scores(measured))
    return _written(scratch, concluded, measured, sheet, key=key)


def _technical(inputs: Inputs, spec: Spec, columns: Columns, runtime: Runtime) -> Iterable[Check]:
    """What must hold of the candidate whatever it is worth."""
    model, output = inputs.model / "model.onnx", spec.serving.output.name
    parity, framework = logic.parity(inputs.answers, spec)
    yield checks.answers_match(framework, runtime.answers(model, parity, output), spec.evaluation.answer_tolerance)
    sample = {name: values[:SAMPLE_ROWS] for name, values in columns.items()}
    yield checks.repeatable([runtime.answers_elsewhere(model, sample, output) for _ in range(PROCESSES)])


def _written(
    scratch: Path, concluded: Verdict, measured: logic.Measured, sheet: str, *, key: Ed25519PrivateKey
) -> Outputs:
    outputs = Outputs(
        decision=concluded.decision,
        reason=concluded.reason,
        verdict=scratch / "verdict.dsse.json",
        report=scratch / "report.html",
        model_card=scratch / "model-card.md",
    )
    outputs.verdict.write_bytes(verdict.sign(concluded, key))
    page = report.page(concluded, sections=logic.sections(measured))
    outputs.report.write_text(page, encoding="utf-8")
    outputs.model_card.write_text(sheet, encoding="utf-8")
    _runtime.event("judged", decision=concluded.decision, reasons=concluded.reasons)
    return outputs


if __name__ == "__main__":
    from seatrial.adapters import keys
    from seatrial.adapters.onnx_runtime import OnnxRuntime

    _runtime.main("evaluate_model", STEP, Inputs, lambda i, s: run(i, s, key=keys.signing_key(), runtime=OnnxRuntime()))
