"""A skopeo whose registry is a folder: it refuses what a registry refuses and keeps what it is given.

<registry>/<repository>/<digest or tag> is a manifest, <registry>/<repository>/blobs/<digest> a blob; the file
<registry>/away means that nobody answers. Every call is a line of <registry>/calls.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from seatrial import digests

REGISTRY = "FAKE_REGISTRY"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put it first on PATH; the registry's folder."""
    programs, registry = folder / "programs", folder / "registry"
    programs.mkdir()
    registry.mkdir()
    script = programs / "skopeo"
    root = Path(__file__).resolve().parents[1]
    script.write_text(f'#!/bin/sh\nPYTHONPATH={root}:{root}/tests exec {sys.executable} -m fakes_skopeo "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(REGISTRY, str(registry))
    return registry


def calls(registry: Path) -> list[str]:
    """What it was called with, one line a call."""
    return (registry / "calls").read_text().splitlines()


def blob(layout: Path, digest: str) -> Path:
    """A blob of an OCI layout."""
    return layout / "blobs" / digest.replace(":", "/")


def store(registry: Path, layout: Path, digest: str, repository: str, *tags: str) -> None:
    """Push a layout's image whole, as somebody has done before."""
    manifest = blob(layout, digest).read_bytes()
    place = registry / repository
    (place / "blobs").mkdir(parents=True, exist_ok=True)
    for name in (digest, *tags):
        (place / name).write_bytes(manifest)
    for entry in _blobs(manifest):
        (place / "blobs" / entry).write_bytes(blob(layout, entry).read_bytes())


def _blobs(manifest: bytes) -> list[str]:
    document = json.loads(manifest)
    return [entry["digest"] for entry in (document["config"], *document["layers"])]


def _fatal(message: str) -> int:
    escaped = message.replace('"', '\\"')
    sys.stderr.write(f'time="2026-12-01T00:00:00Z" level=fatal msg="{escaped}"\n')
    return 1


def _inspect(registry: Path, flags: set[str], name: str) -> int:
    repository, _, reference = name.partition("@")
    manifest = registry / repository / reference
    if not manifest.is_file():
        return _fatal(f'Error parsing image name "docker://{name}": manifest unknown: manifest unknown')
    data = manifest.read_bytes()
    if "--config" in flags:
        data = (registry / repository / "blobs" / json.loads(data)["config"]["digest"]).read_bytes()
    sys.stdout.buffer.write(data)
    return 0


def _pull(registry: Path, name: str, layout: Path) -> int:
    repository, _, digest = name.partition("@")
    manifest = (registry / repository / digest).read_bytes()
    for entry in _blobs(manifest):
        blob(layout, entry).write_bytes((registry / repository / "blobs" / entry).read_bytes())
    return 0


def _push(registry: Path, layout: Path, name: str, digest_file: Path) -> int:
    repository, _, tag = name.rpartition(":")
    (entry,) = [e for e in json.loads((layout / "index.json").read_text())["manifests"] if "annotations" in e][-1:]
    manifest = blob(layout, entry["digest"]).read_bytes()
    for needed in _blobs(manifest):
        if (registry / repository / "blobs" / needed).is_file():
            continue
        if not blob(layout, needed).is_file():
            return _fatal(f"writing blob: open {blob(layout, needed)}: no such file or directory")
        (registry / repository / "blobs").mkdir(parents=True, exist_ok=True)
        (registry / repository / "blobs" / needed).write_bytes(blob(layout, needed).read_bytes())
    for reference in (tag, digests.of_bytes(manifest)):
        (registry / repository / reference).write_bytes(manifest)
    digest_file.write_text(digests.of_bytes(manifest))
    return 0


def main(arguments: list[str]) -> int:
    """What skopeo would do."""
    registry = Path(os.environ[REGISTRY])
    with (registry / "calls").open("a") as log:
        log.write(" ".join(arguments) + "\n")
    command, *rest = [argument for argument in arguments if argument != "--insecure-policy"]
    flags = {argument for argument in rest if argument.startswith("--")}
    names = [argument for argument in rest if not argument.startswith("--")]
    if (registry / "away").exists():
        return _fatal('pinging container registry: Get "http://r/v2/": dial tcp: connect: connection refused')
    if command == "inspect":
        return _inspect(registry, flags, names[0].removeprefix("docker://"))
    source, target = names
    if source.startswith("docker://"):
        return _pull(registry, source.removeprefix("docker://"), Path(target.split(":")[1]))
    (digest_file,) = [Path(flag.partition("=")[2]) for flag in flags if flag.startswith("--digestfile=")]
    return _push(registry, Path(source.split(":")[1]), target.removeprefix("docker://"), digest_file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
