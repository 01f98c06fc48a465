"""The builder in kaniko's place: takes kaniko's arguments and makes the same image.

`python -m seatrial.app.builder --context=tar:///io/in/context --destination=repository:tag --digest-file=…`
On a laptop the base comes from the OCI layout at $SEATRIAL_IMAGES and the image goes there; where that is not set both
go by registry. Paths under /io lie under $SEATRIAL_IO. Exits 1 on everything, with a line `error: …`, as kaniko does.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from seatrial.app import dockerfile, oci
from seatrial.app.dockerfile import Instruction
from seatrial.app.order import Order, order_of
from seatrial.app.pushing import Registry
from seatrial.errors import InvalidInput, StepError, shortened
from steps._runtime import event

BASE_REPOSITORY: Final = "localhost/seatrial/serving-base"
STAND_IN_LABEL: Final = "dev.seatrial.stand-in"
HIDDEN: Final = ("/io", "/kaniko", "/var/run")
"""Where kaniko would drop a COPY without a word: volumes are mounted there, or it is its own."""

_PINNED: Final = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


def ensure_base(layout: Path) -> str:
    """Make the stub that stands in for the Triton serving image, if it is not there; `repository@sha256:…`."""
    images = oci.Layout(layout)
    labels = {STAND_IN_LABEL: "the Triton serving image; locally Triton comes from its own environment"}
    digest = images.write(replace(oci.EMPTY, config={**oci.EMPTY.config, "config": {"Labels": labels}}))
    images.tag(digest, f"{BASE_REPOSITORY}:stand-in")
    return f"{BASE_REPOSITORY}@{digest}"


def build(order: Order, images: oci.Layout, registry: Registry | None = None) -> str:
    """Build and push; the image's digest.

    Args:
        order: What was ordered.
        images: Where the image is made.
        registry: Where its base comes from and where it goes; None: both are the layout.

    Raises:
        InvalidInput: The context or its Dockerfile cannot be built here.
        Unavailable: The registry does not answer.
        IntegrityError: The registry gives or holds something else than was named.
    """
    with tempfile.TemporaryDirectory(prefix="context-") as folder:
        context = Path(folder)
        _unpack(order.context, context)
        try:
            text = _within(context, order.dockerfile).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the context has no readable {order.dockerfile}: {shortened(error)}") from error
        instructions = dockerfile.parse(text)
        base = _base_of(instructions[0])
        if registry is not None and base is not None:
            registry.fetch(base)
        image = _assembled(instructions, context, images, base)
    labels = {**image.config["config"].get("Labels", {}), **order.labels}
    digest = images.write(_with(image, {"Labels": labels} if labels else {}))
    for name in order.destinations if order.push else ():
        if registry is None:
            images.tag(digest, name)
        else:
            registry.push(digest, name, base)
    return digest


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 built, 1 anything else."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        order = order_of(arguments, Path(os.environ.get("SEATRIAL_IO", "/io")))
        event("start", step="build_image", destinations=order.destinations)
        folder = os.environ.get("SEATRIAL_IMAGES", "")
        digest = build(order, oci.Layout(Path(folder))) if folder else _build_for_registry(order)
        if order.digest_file is not None:
            order.digest_file.parent.mkdir(parents=True, exist_ok=True)
            partial = order.digest_file.with_name(f".{order.digest_file.name}.partial")
            partial.write_text(digest)  # no newline, like kaniko's
            partial.rename(order.digest_file)
    except (StepError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    event("done", step="build_image", digest=digest, pushed=order.push)
    return 0


def _build_for_registry(order: Order) -> str:
    with tempfile.TemporaryDirectory(prefix="layout-") as folder:
        registry = Registry(
            layout=Path(folder),
            insecure=order.insecure,
            download_retries=order.download_retries,
            push_retries=order.push_retries,
        )
        return build(order, oci.Layout(Path(folder)), registry)


def _unpack(context: Path, folder: Path) -> None:
    try:
        with tarfile.open(context, "r:gz") as archive:
            for member in archive:
                _unpack_one(archive, member, folder)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InvalidInput(
            f"the context {context} must be a tar.gz of files and folders: {shortened(error)}"
        ) from error


def _unpack_one(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """By hand: the Python of Debian 12 knows no filter that keeps an archive inside its folder."""
    path = PurePosixPath(member.name)
    content = archive.extractfile(member) if member.isreg() else None
    if path.is_absolute() or ".." in path.parts or (content is None and not member.isdir()):
        raise tarfile.TarError(f"{shortened(member.name)!r} leads out of it, or is a link or a device")
    target = folder / path
    if content is None:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(content, file)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _assembled(instructions: Sequence[Instruction], context: Path, images: oci.Layout, base: str | None) -> oci.Image:
    image, workdir = images.read(base.partition("@")[2]) if base is not None else oci.EMPTY, "/"
    for instruction in instructions[1:]:
        settings: dict[str, Any] = image.config["config"]
        match instruction.word:
            case "COPY":
                files = _copied(instruction, context, settings.get("WorkingDir", workdir))
                image = _grown(image, images.layer(files), instruction)
            case "LABEL":
                image = _with(image, {"Labels": {**settings.get("Labels", {}), **instruction.pairs()}})
            case "ENV":
                known = dict(entry.split("=", 1) for entry in settings.get("Env", []))
                merged = {**known, **instruction.pairs()}
                image = _with(image, {"Env": [f"{name}={value}" for name, value in merged.items()]})
            case "WORKDIR":
                place = PurePosixPath(settings.get("WorkingDir", workdir)) / _one(instruction)
                image = _with(image, {"WorkingDir": str(place)})
            case "USER":
                image = _with(image, {"User": _one(instruction)})
            case "ENTRYPOINT":
                image = _with(image, {"Entrypoint": list(instruction.arguments)})
            case _:
                image = _with(image, {"Cmd": list(instruction.arguments)})
    return image


def _base_of(instruction: Instruction) -> str | None:
    """repository@sha256:… of the base; None: from nothing."""
    name = _one(instruction)
    if name == "scratch":
        return None
    if not _PINNED.fullmatch(name):
        raise InvalidInput(
            f"line {instruction.line}: FROM must be pinned, repository@sha256:…; got {shortened(name)!r}"
        )
    return name


def _grown(image: oci.Image, layer: oci.Layer, instruction: Instruction) -> oci.Image:
    """One layer more, told in the history where the base has one: readers count the two against each other."""
    config = image.config
    if "history" in config:
        made_by = " ".join((instruction.word, *instruction.arguments))
        config = {**config, "history": [*config["history"], {"created": oci.EPOCH, "created_by": made_by}]}
    return replace(image, config=config, layers=(*image.layers, layer))


def _copied(instruction: Instruction, context: Path, workdir: str) -> dict[str, Path]:
    """Path in the image, without a leading slash → file of the context; a folder's content, as COPY does it."""
    *sources, target = instruction.arguments
    place = PurePosixPath(workdir) / target
    if not sources or ".." in place.parts:
        raise InvalidInput(f"line {instruction.line}: COPY takes sources and a target within the image")
    if any(place.is_relative_to(hidden) for hidden in HIDDEN):
        raise InvalidInput(f"line {instruction.line}: {place} would be hidden in the builder's pod; use another target")
    files: dict[str, Path] = {}
    for name in sources:
        source = _within(context, name)
        if source.is_dir():
            inside = [path for path in sorted(source.rglob("*")) if path.is_file()]
            files.update({_inner(place / path.relative_to(source)): path for path in inside})
        elif source.is_file():
            into = target.endswith("/") or len(sources) > 1
            files[_inner(place / source.name if into else place)] = source
        else:
            raise InvalidInput(f"line {instruction.line}: the context has no {shortened(name)}")
    return files


def _inner(path: PurePosixPath) -> str:
    return str(path).lstrip("/")


def _within(context: Path, name: str) -> Path:
    """A path of the context, links followed.

    Raises:
        InvalidInput: It leads out of it.
    """
    path = (context / name.lstrip("/")).resolve()
    if not path.is_relative_to(context.resolve()):
        raise InvalidInput(f"{shortened(name)!r} leads out of the context")
    return path


def _one(instruction: Instruction) -> str:
    if len(instruction.arguments) != 1:
        raise InvalidInput(
            f"line {instruction.line}: {instruction.word} takes one argument; got {instruction.arguments}"
        )
    return instruction.arguments[0]


def _with(image: oci.Image, settings: Mapping[str, Any]) -> oci.Image:
    return replace(image, config={**image.config, "config": {**image.config["config"], **settings}})


if __name__ == "__main__":
    sys.exit(main())
