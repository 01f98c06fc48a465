"""One supervised program of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.cluster.packages import SYSTEM_PATH
from infra.cluster.places import Place
from seatrial.app.sandbox.supervisor import Program


@dataclass(frozen=True, kw_only=True)
class Part:
    """A program and how to tell that it is well."""

    program: Program
    healthy: Callable[[], bool]
    within_s: float = 60.0
    """How long it may take to become well."""

    @property
    def name(self) -> str:
        """As supervisord and people call it."""
        return self.program.name


def flags(values: Mapping[str, object], dash: str = "--") -> tuple[str, ...]:
    """`--name=value` for each."""
    return tuple(f"{dash}{name}={value}" for name, value in values.items())


def supervised(place: Place, name: str, command: tuple[str, ...], *, stop_s: int = 5, **environment: str) -> Program:
    """A program with its log where all logs are, and the cluster's own programs on its PATH."""
    return Program(
        name=name,
        command=command,
        environment={"PATH": f"{place.bin}:{SYSTEM_PATH}", "HOME": str(place.root), **environment},
        directory=place.root,
        log=place.logs / f"{name}.log",
        stop_s=stop_s,
    )


def write(path: Path, text: str) -> Path:
    """Write a part's configuration, only when it differs: kube-proxy ends when its file is rewritten."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path
