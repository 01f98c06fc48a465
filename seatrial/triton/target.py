"""What the serving base can load: the newest ONNX that Triton 24.10 with ONNX Runtime 1.19.2 takes.

A newer onnxruntime, like the one that trains and tests, loads models that every serving image refuses.
Source: each release's limits, measured with hand-made models; server#8001 is what users see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

IR_MAX: Final = 10
OPSET_MAX: Final[Mapping[str, int]] = {"": 21, "ai.onnx": 21, "ai.onnx.ml": 5}
"""Operator set domain → newest version; another domain needs a library that the image does not have."""


def too_new(ir_version: int, opsets: Mapping[str, int]) -> list[str]:
    """Why the serving base cannot load such a model; empty: it can.

    Args:
        ir_version: Of the ModelProto.
        opsets: Operator set domain → version that the model imports.
    """
    faults = []
    if ir_version > IR_MAX:
        faults.append(f"the model has ONNX IR {ir_version}; the serving base loads at most {IR_MAX}: export with IR 8")
    for domain, version in sorted(opsets.items()):
        newest = OPSET_MAX.get(domain)
        if newest is None:
            faults.append(f"the model needs operators of {domain!r}; the serving base has none of that domain")
        elif version > newest:
            faults.append(
                f"the model has opset {version} of {domain or 'ai.onnx'!r}; the serving base loads at most {newest}: "
                "export with opset 17"
            )
    return faults
