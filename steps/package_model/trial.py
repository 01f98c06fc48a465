"""The trial: a real Triton on the bundle, asked what ONNX Runtime has answered already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import InvalidInput
from seatrial.release import Release
from seatrial.spec import Spec
from seatrial.triton import requests
from seatrial.triton.requests import Example
from seatrial.triton.server import Boot, Server
from seatrial.verdict import Check


def run(
    spec: Spec, release: Release, repository: Path, golden: Sequence[Example], *, boot: Boot, log: Path
) -> tuple[Check, ...]:
    """The checks `boots` and, when it does, `golden_answers`.

    Args:
        spec: The model's spec.
        release: Its version is what Triton must be ready for.
        repository: Triton model repository with the bundle laid out.
        golden: Requests and their right answers.
        boot: Starts a Triton.
        log: File for what it prints.
    """
    within_s = spec.serving.ready_within_s
    try:
        with boot(repository, model_name=spec.model, version=release.version, log=log, within_s=within_s) as server:
            booted = Check(
                name="boots",
                decision="pass",
                reason=f"triton is ready for version {release.version} after {server.ready_s:.1f} s",
                evidence={"ready_s": round(server.ready_s, 2), "within_s": within_s},
            )
            return booted, _golden(server, golden, release.version)
    except InvalidInput as error:
        return (Check(name="boots", decision="fail", reason=str(error)),)


def _golden(server: Server, golden: Sequence[Example], version: int) -> Check:
    name = "golden_answers"
    if not golden:
        return Check(name=name, decision="inconclusive", reason="no held-out row can be sent as JSON")
    worst, seconds = 0.0, []
    for example in golden:
        answer = server.ask(requests.body(example))
        if answer.status != 200 or answer.version != version:
            who = f"status {answer.status}, version {answer.version}"
            reason = f"row {example.id} was not answered by version {version}: {who} {answer.error}".strip()
            return Check(name=name, decision="fail", reason=reason, evidence={"status": answer.status})
        worst = max(worst, example.apart(answer.outputs))
        seconds.append(answer.seconds)
    within = worst <= requests.TOLERANCE
    return Check(
        name=name,
        decision="pass" if within else "fail",
        reason=f"{len(golden)} answers differ by {worst:.2g} at most; {requests.TOLERANCE:g} is allowed",
        evidence={
            "requests": len(golden),
            "max_abs_difference": min(worst, 1e308),
            "first_ms": round(1e3 * seconds[0], 2),
            "median_ms": round(1e3 * sorted(seconds)[len(seconds) // 2], 2),
        },
    )
