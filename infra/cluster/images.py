"""Images of the cluster's own pods, made from the programs alone: OCI archives for `ctr images import`.

Source: OCI image-spec 1.1; containerd's annotation for the name that an archive's image is to have.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from infra.cluster.build import Programs
from infra.cluster.packages import which
from infra.cluster.versions import Module
from seatrial.app.sandbox.triton import exclusive
from seatrial.errors import InvalidInput

_APPLETS: Final = (
    *("sh", "cat", "cp", "date", "dd", "echo", "env", "expr", "false", "grep", "head", "id", "kill", "ls", "mkdir"),
    *("mv", "nc", "printf", "pwd", "rm", "sed", "seq", "sleep", "sort", "stat", "tail", "tar", "test", "touch"),
    *("tr", "true", "wc"),
)
"""Not wget: busybox-static's crashes where no name service is configured."""

_ROOT_USER: Final = "root:x:0:0:root:/:/bin/sh\n"
_HOSTS_FIRST: Final = "hosts: files dns\n"
_WORLD_WRITABLE: Final = 0o1777


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What lies in an image. Paths have no leading slash."""

    name: str
    programs: Mapping[str, str] = field(default_factory=dict)
    """Path in the image → program here."""
    links: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)
    """Path → mode."""
    config: Mapping[str, Any] = field(default_factory=dict)


def recipes(programs: Programs, modules: Mapping[str, Module]) -> list[Recipe]:
    """Every image that the cluster's own pods run."""
    argo = modules["argo"].version
    controller = programs.program("argo", "workflow-controller")
    server, executor = programs.program("argo", "argo"), programs.program("argo", "argoexec")
    pause, coredns = programs.program("pause", "pause"), programs.program("coredns", "coredns")
    tmp, resolver = {"tmp": _WORLD_WRITABLE}, {"etc/nsswitch.conf": _HOSTS_FIRST}
    users = {"etc/passwd": _ROOT_USER}
    return [
        Recipe(name=PAUSE, programs={"pause": pause}, config={"Entrypoint": ["/pause"], "User": "65535:65535"}),
        Recipe(name=COREDNS, programs={"coredns": coredns}, config={"Entrypoint": ["/coredns"]}),
        busybox(),
        Recipe(
            name=f"localhost/argoexec:{argo}",
            programs={"bin/argoexec": executor},
            texts={**resolver, **users},
            folders=tmp,
            config={"Entrypoint": ["argoexec"]},
        ),
        Recipe(
            name=f"localhost/workflow-controller:{argo}",
            programs={"bin/workflow-controller": controller},
            texts=resolver,
            folders=tmp,
            config={"Entrypoint": ["workflow-controller"], "User": "8737"},
        ),
        Recipe(
            name=f"localhost/argocli:{argo}",
            programs={"bin/argo": server},
            texts=resolver,
            folders={**tmp, "home/argo": _WORLD_WRITABLE},
            config={"Entrypoint": ["argo"], "User": "8737", "WorkingDir": "/home/argo"},
        ),
    ]


PAUSE: Final = "localhost/pause:1"
COREDNS: Final = "localhost/coredns:1"
BUSYBOX: Final = "localhost/busybox:1"


def busybox() -> Recipe:
    """A shell and small tools, for workflows that only show how workflows behave.

    Raises:
        InvalidInput: There is no busybox on this machine.
    """
    program = which("busybox")
    if program is None:
        raise InvalidInput("busybox is missing: apt-get install busybox-static")
    return Recipe(
        name=BUSYBOX,
        programs={"bin/busybox": program},
        links={f"bin/{applet}": "busybox" for applet in _APPLETS},
        texts={"etc/passwd": _ROOT_USER},
        folders={"tmp": _WORLD_WRITABLE},
        config={"Cmd": ["/bin/sh"]},
    )


def ensure(cache: Path, wanted: list[Recipe], say: Callable[[str], None]) -> dict[str, Path]:
    """The archive of each image by its name, written when the cache has none of the same content."""
    started = time.monotonic()
    with exclusive(cache / "build.lock"):
        archives = {recipe.name: cache / "images" / f"{_file_name(recipe)}.tar" for recipe in wanted}
        todo = [recipe for recipe in wanted if not archives[recipe.name].exists()]
        for recipe in todo:
            write(archives[recipe.name], recipe)
    if todo:
        say(f"built {'images of the own pods':<44}{time.monotonic() - started:6.1f} s")
    return archives


def _file_name(recipe: Recipe) -> str:
    """The image's name and a digest of what it holds; programs in the cache are known by their path."""
    known = {path: [program, Path(program).stat().st_size] for path, program in recipe.programs.items()}
    content = [recipe.name, known, dict(recipe.links), dict(recipe.texts), dict(recipe.folders), dict(recipe.config)]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"{recipe.name.rpartition('/')[2].replace(':', '-')}-{digest[:12]}"


def write(archive: Path, recipe: Recipe) -> None:
    """Write the image as an OCI archive, whole or not at all."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    layer = archive.with_suffix(".layer")
    _write_layer(layer, recipe)
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    config = json.dumps(_config(recipe, f"sha256:{digest}")).encode()
    manifest = json.dumps(_manifest(config, f"sha256:{digest}", layer.stat().st_size)).encode()
    partial = archive.with_suffix(".partial")
    with tarfile.open(partial, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(tar, "index.json", json.dumps(_index(recipe.name, manifest)).encode())
        for blob in (manifest, config):
            _add(tar, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        _add_program(tar, f"blobs/sha256/{digest}", layer, 0o644)
    layer.unlink()
    partial.rename(archive)


def _write_layer(path: Path, recipe: Recipe) -> None:
    named = {*recipe.programs, *recipe.links, *recipe.texts, *recipe.folders}
    parents = {str(parent) for name in named for parent in Path(name).parents} - {".", *recipe.folders}
    with tarfile.open(path, "w") as tar:
        for name in sorted({*parents, *recipe.folders}):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, recipe.folders.get(name, 0o755)
            tar.addfile(entry)
        for name, program in sorted(recipe.programs.items()):
            _add_program(tar, name, Path(program), 0o755)
        for name, text in sorted(recipe.texts.items()):
            _add(tar, name, text.encode())
        for name, target in sorted(recipe.links.items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)


def _config(recipe: Recipe, diff_id: str) -> dict[str, Any]:
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": [path], **recipe.config},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }


def _manifest(config: bytes, layer: str, size: int) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **_described(config)},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer, "size": size}],
    }


def _index(name: str, manifest: bytes) -> dict[str, Any]:
    entry = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        **_described(manifest),
        "annotations": {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        },
        "platform": {"architecture": "amd64", "os": "linux"},
    }
    return {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}


def _described(blob: bytes) -> dict[str, Any]:
    return {"digest": f"sha256:{hashlib.sha256(blob).hexdigest()}", "size": len(blob)}


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    tar.addfile(entry, io.BytesIO(content))


def _add_program(tar: tarfile.TarFile, name: str, program: Path, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = program.stat().st_size, mode
    with program.open("rb") as file:
        tar.addfile(entry, file)
