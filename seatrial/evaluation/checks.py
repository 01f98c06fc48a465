"""The checks of evaluate_model: arrays in, `Check` out.

A check that cannot be made for want of data is inconclusive; a number that is not one is never a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seatrial.evaluation.bootstrap import Difference, rows_to_decide
from seatrial.evaluation.metrics import Floats
from seatrial.spec import Decision, Floor, Metric
from seatrial.verdict import Check, Fact

REPEAT_TOLERANCE: Final = 1e-6
"""Most that answers of separate processes may differ by."""

Answers = NDArray[np.floating[Any]]


def answers_match(framework: Answers, onnx: Answers, tolerance: float) -> Check:
    """Whether the ONNX graph answers as the framework that trained it does, both of shape (rows, width)."""
    name = "answers_match"
    if framework.shape != onnx.shape:
        reason = f"the framework gave answers of shape {framework.shape}, the ONNX model {onnx.shape}"
        return Check(name=name, decision="fail", reason=reason)
    if framework.size == 0:
        return Check(name=name, decision="inconclusive", reason="there is no parity row to compare on")
    apart = _apart([framework, onnx])
    evidence: dict[str, Fact] = {"max_abs_difference": apart, "tolerance": tolerance, "rows": len(framework)}
    if apart is None:
        return Check(name=name, decision="fail", reason="an answer is not finite", evidence=evidence)
    return Check(
        name=name,
        decision="pass" if apart <= tolerance else "fail",
        reason=f"ONNX and the framework differ by {apart:.2g} at most; {tolerance:.2g} is allowed",
        evidence=evidence,
    )


def repeatable(runs: Sequence[Answers]) -> Check:
    """Whether processes that know nothing of each other give the same answers to the same rows."""
    name = "repeatable"
    if len(runs) < 2 or runs[0].size == 0:
        return Check(name=name, decision="inconclusive", reason="fewer than two processes answered, or no rows")
    apart = _apart(runs)
    evidence: dict[str, Fact] = {"max_abs_difference": apart, "tolerance": REPEAT_TOLERANCE, "processes": len(runs)}
    if apart is None:
        return Check(name=name, decision="fail", reason="an answer is not finite", evidence=evidence)
    return Check(
        name=name,
        decision="pass" if apart <= REPEAT_TOLERANCE else "fail",
        reason=f"{len(runs)} processes differ by {apart:.2g} at most; {REPEAT_TOLERANCE:.2g} is allowed",
        evidence=evidence,
    )


def finite(probability: Floats) -> Check:
    """Whether every answer is a probability: finite and within [0, 1]."""
    name = "finite"
    if len(probability) == 0:
        return Check(name=name, decision="inconclusive", reason="there is no held-out row to answer")
    with np.errstate(invalid="ignore"):
        wrong = int((~((probability >= 0) & (probability <= 1))).sum())
    return Check(
        name=name,
        decision="fail" if wrong else "pass",
        reason=f"{wrong} of {len(probability)} answers are not a finite number within [0, 1]",
        evidence={"wrong": wrong, "rows": len(probability)},
    )


def class_rows(label: Floats, least: int) -> Check:
    """Whether there are enough rows of the rarer class to judge by."""
    ones = int(label.sum())
    rarer = min(ones, len(label) - ones)
    return Check(
        name="class_rows",
        decision="pass" if rarer >= least else "inconclusive",
        reason=f"{rarer} held-out rows of the rarer class; at least {least} are needed to judge",
        evidence={"rows": len(label), "label_1": ones, "label_0": len(label) - ones, "least": least},
    )


def floor(name: str, limit: Floor, value: float) -> Check:
    """Whether the candidate keeps an absolute limit, whatever the champion does; on the limit is within."""
    side, bound = ("at least", limit.at_least) if limit.at_least is not None else ("at most", limit.at_most)
    assert bound is not None  # noqa: S101 - the spec holds exactly one side
    kept = value >= bound if side == "at least" else value <= bound
    known = bool(np.isfinite(value))
    return Check(
        name=name,
        decision="pass" if known and kept else "fail",
        reason=f"{limit.metric} is {value:.4g}; it must be {side} {bound:g}",
        evidence={"value": value if known else None, "limit": bound, "side": side},
    )


def differs(candidate: str, champion: str) -> Check:
    """Whether candidate and champion are two models, by the digest of their files."""
    same = candidate == champion
    reason = "the candidate is the champion, byte for byte: no change, do not deploy"
    return Check(
        name="differs",
        decision="fail" if same else "pass",
        reason=reason if same else "candidate and champion are different files",
        evidence={"candidate": candidate, "champion": champion},
    )


def primary(
    metric: Metric, found: Difference, margin: float, *, rows: int, values: tuple[float, float], alpha: float
) -> Check:
    """Whether the candidate is shown to be not worse than the champion by more than the margin.

    Pass when it is shown within the margin, fail when it is shown beyond, else inconclusive. Equal answers differ by
    nothing and pass: somebody asked for the release.

    Args:
        metric: What is compared.
        found: How much worse the candidate is.
        margin: Largest loss, in the metric's units, that still counts as not worse; on it is within.
        rows: Held-out rows compared.
        values: The metric of candidate and champion.
        alpha: What the bounds of `found` were made for.
    """
    decision = _by_margin(found, margin)
    candidate, champion = values
    evidence: dict[str, Fact] = {
        "candidate": _known(candidate),
        "champion": _known(champion),
        "worse_by": _known(found.estimate),
        "at_least": _known(found.at_least),
        "at_most": _known(found.at_most),
        "margin": margin,
        "alpha": alpha,
        "rows": rows,
    }
    reason = (
        f"{metric} {candidate:.4g} against the champion's {champion:.4g}: {_words(found.estimate)}, and with "
        f"{1 - alpha:.0%} confidence at the worst {_words(found.at_most)}; the margin is {margin:g}"
    )
    if decision == "inconclusive":
        needed = rows_to_decide(found, margin, rows)
        evidence["rows_to_decide"] = needed
        more = "no number of rows decides on the margin" if needed is None else f"about {needed} rows would decide"
        reason = f"{reason}; {rows} rows do not decide, {more}"
    return Check(name="primary", decision=decision, reason=reason, evidence=evidence)


def not_compared(why: str) -> Check:
    """The primary check when the champion gave no answers to compare with."""
    return Check(name="primary", decision="inconclusive", reason=why)


def _by_margin(found: Difference, margin: float) -> Decision:
    if not np.isfinite([found.estimate, found.at_least, found.at_most]).all():
        return "inconclusive"
    if found.at_most <= margin:
        return "pass"
    return "fail" if found.at_least > margin else "inconclusive"


def _apart(runs: Sequence[Answers]) -> float | None:
    """The largest difference between any two runs; None when a value is not finite."""
    stacked = np.stack([np.asarray(run, dtype=np.float64) for run in runs])
    return float(np.ptp(stacked, axis=0).max()) if np.isfinite(stacked).all() else None


def _words(worse_by: float) -> str:
    return f"{abs(worse_by):.3g} {'worse' if worse_by > 0 else 'better'}"


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
