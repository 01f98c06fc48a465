"""Starts every image as a cluster would at its strictest: read-only root, no capability, no network, not root.

By runc, on a mount of the image from buildah's storage: what the image's own ENTRYPOINT says, asked for its help.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from infra.images.built import Built
from infra.images.catalogue import STEPS
from infra.images.place import Cache
from infra.images.programs import Programs, required
from seatrial.errors import InvalidInput, shortened

WITHIN_S: Final = 120
ROOT_ALLOWED: Final = frozenset({"seatrial/kaniko"})
"""Unpacks what belongs to root, as kaniko does."""
BUILDER_CAPABILITIES: Final = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
_SHELLS: Final = ("usr/bin/sh", "usr/bin/dash", "usr/bin/bash", "usr/bin/busybox")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What an image is started with, and what shows that it is whole."""

    arguments: tuple[str, ...]
    says: str
    exit_code: int = 0
    needs_shell: bool = False
    """Whether something in it needs a shell."""


_PYTHON: Final = (
    "import bz2, ctypes, lzma, sqlite3, ssl, zoneinfo; zoneinfo.ZoneInfo('Europe/Berlin'); "
    "print(len(ssl.create_default_context().get_ca_certs()) > 100)"
)
TRIALS: Final[Mapping[str, Trial]] = {
    "seatrial/base": Trial(arguments=("-c", _PYTHON), says="True"),
    "seatrial/git": Trial(
        arguments=("-c", "import subprocess as s; s.run(['git', '--version'], check=True); s.run(['ssh', '-V'])"),
        says="git version",
        needs_shell=True,
    ),
    "seatrial/triton": Trial(
        arguments=("--model-repository=/nowhere",), says="failed to stat file /nowhere", exit_code=1, needs_shell=True
    ),
    "seatrial/kaniko": Trial(
        arguments=("--context=tar:///io/in/context", "--no-push", "--digest-file=/io/out/digest"),
        says='"pushed": false',
    ),
    "seatrial/git-server": Trial(arguments=("--help",), says="GIT_REPOSITORIES", needs_shell=True),
    **{
        step.name: Trial(
            arguments=("--help",), says=f"python -m steps.{step.short.replace('-', '_')}",
            needs_shell=step.short in {"resolve-release", "package-model"},
        )
        for step in STEPS
    },
}  # fmt: skip


def check(images: Mapping[str, Built], cache: Cache, say: Callable[[str], None]) -> None:
    """Start each image that has a trial.

    Raises:
        InvalidInput: One does not hold; names all that do not, and why.
    """
    required("buildah", "runc")
    faults = []
    with cache.shared("storage"):
        for name, trial in TRIALS.items():
            found = list(_faults(images[name], trial, cache))
            say(f"{name:<26} {'; '.join(found) or 'runs'}")
            faults += [f"{name}: {fault}" for fault in found]
    if faults:
        raise InvalidInput(f"{len(faults)} faults in images: {'; '.join(faults)}")


def _faults(made: Built, trial: Trial, cache: Cache) -> Iterator[str]:
    if made.user in {"", "0", "root", "0:0"} and made.name not in ROOT_ALLOWED:
        yield f"runs as {made.user or 'root'}"
    if not made.entrypoint:
        yield "has no ENTRYPOINT"
        return
    with _mounted(made, cache) as (root, settings):
        if not trial.needs_shell and (shells := [shell for shell in _SHELLS if (root / shell).exists()]):
            yield f"holds {', '.join(shells)}, which nothing in it needs"
        code, said = _run(root, settings, trial)
    if code != trial.exit_code:
        yield f"ended with {code}: {shortened(said[-200:])}"
    elif trial.says not in said:
        yield f"said {shortened(said)} and not {trial.says}"


def specification(root: Path, io: Path, settings: Mapping[str, Any], trial: Trial) -> dict[str, Any]:
    """What runc is told. Source: OCI runtime-spec 1.0, config.md and config-linux.md.

    Args:
        root: The image's files.
        io: What is mounted at /io, as Argo does it.
        settings: `config` of the image.
        trial: What it is started with.
    """
    uid, _, gid = (settings.get("User") or "0:0").partition(":")
    kept = list(BUILDER_CAPABILITIES) if uid == "0" else []
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": int(uid), "gid": int(gid or uid)},
            "args": [*settings["Entrypoint"], *trial.arguments],
            "env": settings.get("Env", []),
            "cwd": settings.get("WorkingDir") or "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), kept),
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": [
            {"destination": "/io", "type": "bind", "source": str(io), "options": ["rbind", "rw", "nosuid"]},
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "mode=1777"]},  # noqa: S108
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]},  # noqa: S108
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }


@contextmanager
def _mounted(made: Built, cache: Cache) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The image's files, and its config's `config`."""
    programs, log = Programs(cache), cache.log("check")
    container = programs.buildah("from", "--pull-never", made.stored_name, log=log).strip()
    try:
        root = Path(programs.buildah("mount", container, log=log).strip())
        inspected = json.loads(programs.buildah("inspect", "--type=image", made.stored_name, log=log))
        yield root, inspected["OCIv1"]["config"]
    finally:
        programs.buildah("rm", container, log=log)


def _run(root: Path, settings: Mapping[str, Any], trial: Trial) -> tuple[int, str]:
    """Exit code, and what it said."""
    with tempfile.TemporaryDirectory(prefix="seatrial-check-") as folder:
        io, identity = Path(folder, "io"), Path(folder).name
        _lay_context(io / "in" / "context")
        Path(folder, "config.json").write_text(json.dumps(specification(root, io, settings, trial)))
        command = ["runc", f"--root={folder}/state", "run", f"--bundle={folder}", identity]
        try:
            done = subprocess.run(
                command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN_S
            )
        except subprocess.TimeoutExpired:
            subprocess.run(["runc", f"--root={folder}/state", "delete", "--force", identity], check=False)
            return -1, f"did not end within {WITHIN_S} s"
    return done.returncode, done.stdout + done.stderr


def _lay_context(path: Path) -> None:
    """The smallest that the builder can build."""
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in {
            "Dockerfile": b"FROM scratch\nCOPY models/ /models/\n",
            "models/m/1/model.onnx": b"m",
        }.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, BytesIO(data))
