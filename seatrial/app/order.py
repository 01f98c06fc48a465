"""What a kaniko command line orders. Source: kaniko 1.28, `executor --help`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from seatrial.app.dockerfile import Instruction
from seatrial.errors import InvalidInput, shortened

VALUED: Final = (
    "context",
    "dockerfile",
    "destination",
    "digest-file",
    "label",
    "insecure-registry",
    "push-retry",
    "image-download-retry",
)
REPEATED: Final = ("destination", "label", "insecure-registry")
MEANINGLESS: Final[dict[str, str]] = {
    "cache": "nothing is built that could be cached",
    "compressed-caching": "layers are streamed",
    "image-format": "what is made is an OCI image",
    "image-fs-extract-retry": "the base is not unpacked",
    "log-format": "the log is JSON lines",
    "verbosity": "the log is short",
    "skip-push-permission-check": "a registry's rights show when it is written",
}
"""Flags of kaniko that change nothing here → why."""

_DESTINATION: Final = re.compile(
    r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][\w.-]{0,127}"
)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was ordered."""

    context: Path
    dockerfile: str
    destinations: tuple[str, ...]
    digest_file: Path | None
    labels: Mapping[str, str]
    push: bool
    insecure: frozenset[str] = frozenset()
    """Registries that may speak plain http."""
    push_retries: int = 0
    download_retries: int = 0


def order_of(arguments: Sequence[str], io: Path) -> Order:
    """What a kaniko command line orders.

    Args:
        arguments: The command line.
        io: What /io means here.

    Raises:
        InvalidInput: An unknown flag, a missing one, or a value of another form.
    """
    flags = _flags(arguments)
    context, no_push = flags.get("context", [""])[-1], flags.get("no-push", ["false"])[-1] == "true"
    destinations = tuple(flags.get("destination", []))
    if not context.startswith("tar://"):
        raise InvalidInput(f"--context must be tar:///path here; got {shortened(context)!r}")
    if not destinations and not no_push:
        raise InvalidInput("--destination=repository:tag is needed, or --no-push")
    for name in destinations:
        if not _DESTINATION.fullmatch(name):
            raise InvalidInput(f"--destination must be registry/repository:tag; got {shortened(name)!r}")
    digest_file = flags.get("digest-file", [""])[-1]
    return Order(
        context=_here(context.removeprefix("tar://"), io),
        dockerfile=flags.get("dockerfile", ["Dockerfile"])[-1],
        destinations=destinations,
        digest_file=_here(digest_file, io) if digest_file else None,
        labels=Instruction(0, "--label", tuple(flags.get("label", []))).pairs(),
        push=not no_push,
        insecure=frozenset(flags.get("insecure-registry", [])),
        push_retries=_count(flags, "push-retry"),
        download_retries=_count(flags, "image-download-retry"),
    )


def _flags(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Flag → its values: `--name=value`, `--name value` where one is needed, `--name` for true."""
    flags: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        flag = rest.pop(0)
        name, equals, value = flag.removeprefix("--").partition("=")
        if not flag.startswith("--") or name not in {*VALUED, *MEANINGLESS, "no-push"}:
            raise InvalidInput(f"unknown flag {shortened(flag)!r}; this builder knows {sorted([*VALUED, 'no-push'])}")
        if not equals and name in VALUED:
            if not rest:
                raise InvalidInput(f"--{name} needs a value")
            value = rest.pop(0)
        flags.setdefault(name, []).append(value if equals or name in VALUED else "true")
        if len(flags[name]) > 1 and name not in REPEATED:
            raise InvalidInput(f"--{name} is given twice")
    return flags


def _count(flags: Mapping[str, list[str]], name: str) -> int:
    text = flags.get(name, ["0"])[-1]
    if not re.fullmatch(r"\d{1,3}", text):
        raise InvalidInput(f"--{name} must be a number of tries; got {shortened(text)!r}")
    return int(text)


def _here(path: str, io: Path) -> Path:
    place = PurePosixPath(path)
    return io / place.relative_to("/io") if place.is_relative_to("/io") else Path(path)
