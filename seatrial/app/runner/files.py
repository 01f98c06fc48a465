"""A node's folder: what it gets is linked in, what it leaves is read out. No file is copied where a link will do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from seatrial.app.runner.manifest import Template
from seatrial.app.runner.nodes import Node, NodeArtifact, NodeOutputs, NodeParameter, StoredAt
from seatrial.errors import InvalidInput, StepError, shortened

PARAMETER_MAX_BYTES: Final = 256 * 1024
"""Argo keeps parameters in the Workflow object and takes no larger ones."""


TERMINATION_MAX_BYTES: Final = 4096
"""Of a container's termination message. Source: the Kubernetes API reference."""


@dataclass(frozen=True)
class NodeFolder:
    """Where a node's files lie: `<runs>/<run>/<node id>/{io,tmp,main.log}`.

    Args:
        runs: The folder of all runs: what artifacts' keys are relative to.
        path: The node's own.
        template: What runs there.
    """

    runs: Path
    path: Path
    template: Template

    def prepare(self, node: Node) -> None:
        """Make the container's folders and link the input files in.

        Raises:
            StepError: An input file is gone, or holds a symlink.
        """
        for place in [self.path, *self.mounts().values()]:
            place.mkdir(parents=True, exist_ok=True)
        self.termination_log.touch()
        for artifact in node.inputs.artifacts:
            place = self.on_disk(artifact.path)
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(self.runs / artifact.s3.key, place)

    @property
    def termination_log(self) -> Path:
        """Stands for /dev/termination-log: why the process failed, by its own word."""
        return self.path / "termination-log"

    def last_words(self) -> str:
        """What it says, cut as the kubelet cuts it; empty without any."""
        try:
            with self.termination_log.open("rb") as log:
                return log.read(TERMINATION_MAX_BYTES).decode(errors="replace")
        except OSError:
            return ""

    def mounts(self) -> Mapping[str, Path]:
        """Mount path in the container → folder here, for its empty volumes."""
        container, empty = self.template.container, {v.name for v in self.template.volumes if v.empty_dir is not None}
        mounts = container.volume_mounts if container is not None else ()
        return {mount.mount_path: self.path / mount.name for mount in mounts if mount.name in empty}

    def on_disk(self, path: str) -> Path:
        """Where a path of the container lies here.

        Raises:
            StepError: It lies in no empty volume.
        """
        for mount, place in self.mounts().items():
            if PurePosixPath(path).is_relative_to(mount):
                return place / PurePosixPath(path).relative_to(mount)
        raise StepError(f"{self.template.name}: {path} lies in none of its volumes {sorted(self.mounts())}")

    def outputs(self) -> tuple[NodeOutputs, str]:
        """What the process left, and why it cannot be used; empty: it can. A missing parameter is its default."""
        faults: list[str] = []
        parameters, artifacts = [], []
        for wanted in self.template.outputs.parameters:
            try:
                value = self._parameter(wanted.value_from.path or "", wanted.value_from.default)
            except InvalidInput as error:
                faults.append(f"output parameter {wanted.name}: {error}")
                break  # the executor reads no further either
            parameters.append(NodeParameter(name=wanted.name, value=value))
        for place in self.template.outputs.artifacts:
            there = self.on_disk(place.path)
            if not there.exists():
                faults.append(f"output artifact {place.name} is not at {place.path}")
                continue
            key = there.relative_to(self.runs).as_posix()
            artifacts.append(NodeArtifact(name=place.name, path=place.path, s3=StoredAt(key=key)))
        return NodeOutputs(parameters=tuple(parameters), artifacts=tuple(artifacts)), "; ".join(faults)

    def _parameter(self, path: str, default: str | None) -> str:
        place = self.on_disk(path)
        try:
            data = place.read_bytes()
        except FileNotFoundError as error:
            if default is None:
                raise InvalidInput(f"it is not at {path} and has no default") from error
            return default
        except OSError as error:
            raise InvalidInput(f"it cannot be read: {shortened(error)}") from error
        if len(data) > PARAMETER_MAX_BYTES:
            raise InvalidInput(f"it may have at most {PARAMETER_MAX_BYTES} bytes; got {len(data)}")
        try:
            return data.decode().removesuffix("\n")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"it is not UTF-8 text: {shortened(error)}") from error


def _link(source: Path, place: Path) -> None:
    """The file or folder `source` at `place`: hard links, or copies where the file system has none."""
    if source.is_symlink():
        raise StepError(f"an artifact holds no symlink; got {source.name}")
    if source.is_dir():
        place.mkdir()
        for entry in sorted(source.iterdir()):
            _link(entry, place / entry.name)
        return
    try:
        os.link(source, place)
    except FileNotFoundError as error:
        raise StepError(f"the input {place.name} is gone from {source}") from error
    except OSError:
        shutil.copyfile(source, place)
