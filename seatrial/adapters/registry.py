"""Where serving images are pushed and what they are built on, from the mounted environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seatrial.errors import InvalidInput, shortened

REGISTRY: Final = "SEATRIAL_REGISTRY"
SERVING_BASE: Final = "SEATRIAL_SERVING_BASE"

_PREFIX = re.compile(r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_PINNED = re.compile(_PREFIX.pattern + r"@sha256:[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Names of images, not images."""

    prefix: str
    """What every serving image's repository starts with, like localhost/seatrial."""
    serving_base: str
    """repository@sha256:… of the Triton image that every serving image is built on."""


def from_environment(environment: Mapping[str, str] = os.environ) -> Registry:
    """What the config map `seatrial-registry` says.

    Raises:
        InvalidInput: A value is missing or malformed, or the base is not pinned by digest.
    """
    prefix, base = environment.get(REGISTRY, ""), environment.get(SERVING_BASE, "")
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInput(f"{REGISTRY} must be like localhost/seatrial; got {shortened(repr(prefix))}")
    if not _PINNED.fullmatch(base):
        raise InvalidInput(f"{SERVING_BASE} must be repository@sha256:<64 hex digits>; got {shortened(repr(base))}")
    return Registry(prefix=prefix, serving_base=base)
