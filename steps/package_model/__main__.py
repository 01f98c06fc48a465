"""package_model: the bundle, a real boot of it, and its place in the store.

    verdicts         of the data and of the evaluation: signed, passed, about these very files
    config           config.pbtxt against the spec, ONNX against the serving base
    boots            the real Triton on the bundle, laid out as this version
    golden_answers   its answers against ONNX Runtime's
    request_schema   what callers of the champion would run into

Nothing is written to the store unless every check passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from seatrial import bundle, verdict
from seatrial.adapters import rows
from seatrial.adapters.registry import Registry
from seatrial.bundle import Bundle
from seatrial.evaluation.runtime import Runtime
from seatrial.names import kebab
from seatrial.ports import Store
from seatrial.release import read as read_release
from seatrial.spec import Spec
from seatrial.triton import requests
from seatrial.triton.requests import Example
from seatrial.triton.required import required
from seatrial.triton.server import Boot
from seatrial.verdict import Verdict
from steps import _runtime, _source
from steps.package_model import accepted, build, context, papers, trial
from steps.package_model.contract import STEP, Inputs, Outputs


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What packaging needs from outside."""

    store: Store
    signing_key: Ed25519PrivateKey
    trusted_keys: tuple[Ed25519PublicKey, ...]
    registry: Registry
    runtime: Runtime
    boot: Boot


def run(inputs: Inputs, scratch: Path, ports: Ports) -> Outputs:
    """Make the bundle, try it, keep it.

    Raises:
        IntegrityError: A verdict handed in is not one of ours, did not pass, or is about other files.
    """
    release = read_release(inputs.release)
    spec = _source.spec_of(inputs.source, release)
    believed = accepted.check(inputs, release, spec, ports.trusted_keys)
    root, repository = scratch / "bundle", scratch / "models"
    sealed = build.bundle(inputs, spec, root)
    bundle.lay_out(root, release.version, repository)
    examples = _examples(inputs, spec, ports.runtime)
    tried = trial.run(spec, release, repository, examples["golden"], boot=ports.boot, log=scratch / "triton.log")
    schema = build.schema_check(root, inputs.champion, release)
    known = papers.of(inputs, spec, release, sealed, examples)
    concluded = verdict.conclude(
        "package_model",
        release,
        spec,
        required=required(champion=release.champion is not None),
        checks=(believed, build.config_check(root, spec), *tried, *(() if schema is None else (schema,))),
        judged={"bundle": sealed.digest, "model": sealed.model_digest, **papers.judged(known)},
    )
    envelope = verdict.sign(concluded, ports.signing_key)
    text = context.dockerfile(ports.registry.serving_base, sealed, release)
    tag = context.pack(text, repository, scratch / "context.tar.gz")
    _runtime.event("judged", decision=concluded.decision, reasons=concluded.reasons, bundle=sealed.digest)
    if concluded.decision == "pass":
        written = papers.keep(ports.store, root, known, envelope)
        _runtime.event("kept", bundle=sealed.digest, bytes=written)
    (scratch / "verdict.dsse.json").write_bytes(envelope)
    return _outputs(scratch, concluded, sealed, ports.registry, tag)


def _examples(inputs: Inputs, spec: Spec, runtime: Runtime) -> dict[str, list[Example]]:
    """Golden and replay requests with ONNX Runtime's answers."""
    held_out = rows.read(inputs.holdout_rows)
    columns = rows.columns(held_out, spec.data.features)
    answers = runtime.answers(inputs.model / "model.onnx", columns, spec.serving.output.name)
    names = [str(name) for name in held_out[spec.data.id].to_list()]
    chosen = {
        "golden": requests.golden_rows(columns),
        "replay": requests.spread(requests.sendable(columns), requests.REPLAY_ROWS_MAX),
    }
    return {name: list(requests.examples(spec, columns, answers, which, names)) for name, which in chosen.items()}


def _outputs(scratch: Path, concluded: Verdict, sealed: Bundle, registry: Registry, tag: str) -> Outputs:
    """After a refusal there is nothing to build, and no parameter says where."""
    passed = concluded.decision == "pass"
    return Outputs(
        decision=concluded.decision,
        reason=concluded.reason,
        bundle_digest=sealed.digest if passed else "",
        repository=f"{registry.prefix}/{kebab(sealed.model_name)}" if passed else "",
        tag=tag if passed else "",
        context=scratch / "context.tar.gz",
        verdict=scratch / "verdict.dsse.json",
    )


if __name__ == "__main__":
    from seatrial.adapters import keys, registry, s3, triton
    from seatrial.adapters.onnx_runtime import OnnxRuntime

    _runtime.main(
        "package_model",
        STEP,
        Inputs,
        lambda i, s: run(
            i,
            s,
            Ports(
                store=s3.from_environment(),
                signing_key=keys.signing_key(),
                trusted_keys=keys.trusted_keys(),
                registry=registry.from_environment(),
                runtime=OnnxRuntime(),
                boot=triton.boot,
            ),
        ),
    )
