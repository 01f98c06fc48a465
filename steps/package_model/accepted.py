"""Whether the verdicts handed in may be believed: signed, passed, of this release, about these very files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from seatrial import digests, verdict
from seatrial.errors import IntegrityError
from seatrial.release import Release
from seatrial.spec import Spec
from seatrial.verdict import Check, Gate, Verdict
from steps import _required
from steps.package_model.contract import Inputs


def check(inputs: Inputs, release: Release, spec: Spec, trusted: Iterable[Ed25519PublicKey]) -> Check:
    """The check `verdicts`; it passes or raises, for a verdict that does not fit is no result but an attack or a bug.

    Raises:
        IntegrityError: A verdict is unsigned, altered, foreign, no pass, of another release, or about other files.
    """
    keys = tuple(trusted)
    holdout = digests.of_file(inputs.holdout_rows)
    champion = {} if release.champion is None else {"champion": release.champion.bundle}
    model = {"model": digests.of_file(inputs.model / "model.onnx"), "model_files": digests.of_tree(inputs.model)}
    data = _believed(inputs.data_verdict, "validate_data", keys)
    evaluation = _believed(inputs.evaluation_verdict, "evaluate_model", keys)
    _fits(data, release, spec, {"data": release.data_digest, "holdout_rows": holdout})
    _fits(evaluation, release, spec, {**model, **champion, "holdout_rows": holdout})
    _required.check((data, evaluation), spec, champion=release.champion is not None)
    return Check(
        name="verdicts",
        decision="pass",
        reason="the data and the evaluation passed, both verdicts are signed and about these files",
        evidence={"data_checks": len(data.checks), "evaluation_checks": len(evaluation.checks)},
    )


def _believed(envelope: Path, gate: Gate, keys: tuple[Ed25519PublicKey, ...]) -> Verdict:
    found = verdict.verify(envelope.read_bytes(), keys)
    if found.gate != gate:
        raise IntegrityError(f"a verdict of {gate} is needed; got one of {found.gate}")
    if found.decision != "pass":
        raise IntegrityError(f"{gate} must have passed before packaging; it says {found.decision}: {found.reasons}")
    return found


def _fits(found: Verdict, release: Release, spec: Spec, judged: Mapping[str, str]) -> None:
    wanted = (release.release_id, release.model_name, release.version, spec.policy_digest)
    came = (found.release_id, found.model_name, found.version, found.policy)
    if came != wanted:
        raise IntegrityError(f"{found.gate}'s verdict must be of release, model, version, policy {wanted}; got {came}")
    for name, digest in judged.items():
        if found.judged.get(name) != digest:
            raise IntegrityError(f"{found.gate} judged {name} {found.judged.get(name)}; handed in is {digest}")
