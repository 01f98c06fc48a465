"""The bundle's files, and what can be said of them without a server."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from seatrial import bundle as bundles
from seatrial.bundle import Bundle
from seatrial.errors import IntegrityError, InvalidInput, shortened
from seatrial.release import Release
from seatrial.spec import Spec
from seatrial.triton import config, schema, target
from seatrial.verdict import Check
from steps.package_model.contract import Inputs


def bundle(inputs: Inputs, spec: Spec, root: Path) -> Bundle:
    """Write the bundle to `root` and seal it; the owner's own config.pbtxt is taken when there is one."""
    shutil.copytree(inputs.model, root / bundles.MODEL_FOLDER, symlinks=True)
    own = inputs.source / bundles.CONFIG
    text = own.read_text(encoding="utf-8") if own.exists() else config.render(spec)
    (root / bundles.CONFIG).write_text(text, encoding="utf-8")
    return bundles.seal(root, spec.model)


def config_check(root: Path, spec: Spec) -> Check:
    """Whether config.pbtxt serves what the spec promises, and the serving base can load such an ONNX file."""
    faults = config.faults((root / bundles.CONFIG).read_text(encoding="utf-8"), spec)
    faults += target.too_new(*_versions(root / bundles.MODEL_FILE))
    return Check(
        name="config",
        decision="fail" if faults else "pass",
        reason="; ".join(faults) or "config.pbtxt says what model.yaml says, and the serving base knows the operators",
        evidence={"faults": len(faults)},
    )


def schema_check(root: Path, champion: Path, release: Release) -> Check | None:
    """Whether every request that the champion takes still works; None on a first release."""
    if release.champion is None:
        return None
    found = bundles.read(champion / "bundle")
    if found.digest != release.champion.bundle:
        raise IntegrityError(f"the champion's bundle must be {release.champion.bundle}; got {found.digest}")
    old = schema.schema_of((champion / "bundle" / bundles.CONFIG).read_text(encoding="utf-8"))
    try:
        new = schema.schema_of((root / bundles.CONFIG).read_text(encoding="utf-8"))
    except InvalidInput as error:
        return Check(name="request_schema", decision="fail", reason=str(error))
    broken = schema.breaks(old, new)
    return Check(
        name="request_schema",
        decision="fail" if broken else "pass",
        reason="; ".join(broken) or f"every request to version {release.champion.version} still works",
        evidence={"inputs": len(new.inputs), "outputs": len(new.outputs), "breaks": len(broken)},
    )


def _versions(model: Path) -> tuple[int, dict[str, int]]:
    try:
        proto = onnx.load(model, load_external_data=False)
    except (DecodeError, OSError, ValueError) as error:
        raise InvalidInput(f"model.onnx is no ONNX file: {shortened(error)}") from error
    return proto.ir_version, {entry.domain: entry.version for entry in proto.opset_import}
