"""The local builder: takes kaniko's arguments, makes the same image, pushes it into the OCI layout at $SEATRIAL_IMAGES.

`python -m seatrial.app.builder --context=tar:///io/in/context --destination=repository:tag --digest-file=…`
Paths under /io lie under $SEATRIAL_IO. Exits 1 on everything, with a line `error: …`, as kaniko does.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from seatrial.app import dockerfile, oci
from seatrial.app.dockerfile import Instruction
from seatrial.errors import InvalidInput, StepError, shortened
from steps._runtime import event

BASE_REPOSITORY: Final = "localhost/seatrial/serving-base"
STAND_IN_LABEL: Final = "dev.seatrial.stand-in"
HIDDEN: Final = ("/io", "/kaniko", "/var/run")
"""Where kaniko would drop a COPY without a word: volumes are mounted there, or it is its own."""

VALUED: Final = ("context", "dockerfile", "destination", "digest-file", "label")
REPEATED: Final = ("destination", "label")
MEANINGLESS: Final[dict[str, str]] = {
    "cache": "nothing is built that could be cached",
    "compressed-caching": "layers are streamed",
    "image-format": "an OCI layout holds OCI images",
    "push-retry": "a folder does not hiccup",
    "image-download-retry": "the base lies in the same folder",
    "image-fs-extract-retry": "the base is not unpacked",
    "log-format": "the log is JSON lines",
    "verbosity": "the log is short",
    "skip-push-permission-check": "a folder's rights show when it is written",
}
"""Flags of kaniko that change nothing here → why."""

_DESTINATION: Final = re.compile(
    r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][\w.-]{0,127}"
)
_PINNED: Final = re.compile(r"[^\s@]+@(sha256:[0-9a-f]{64})")


@dataclass(frozen=True)
class Order:
    """What was ordered."""

    context: Path
    dockerfile: str
    destinations: tuple[str, ...]
    digest_file: Path | None
    labels: Mapping[str, str]
    push: bool


def ensure_base(layout: Path) -> str:
    """Make the stub that stands in for the Triton serving image, if it is not there; `repository@sha256:…`."""
    images = oci.Layout(layout)
    labels = {STAND_IN_LABEL: "the Triton serving image; locally Triton comes from its own environment"}
    digest = images.write(replace(oci.EMPTY, config={**oci.EMPTY.config, "config": {"Labels": labels}}))
    images.tag(digest, f"{BASE_REPOSITORY}:stand-in")
    return f"{BASE_REPOSITORY}@{digest}"


def build(order: Order, images: oci.Layout) -> str:
    """Build and push; the image's digest.

    Raises:
        InvalidInput: The context or its Dockerfile cannot be built here.
    """
    with tempfile.TemporaryDirectory(prefix="context-") as folder:
        context = Path(folder)
        _unpack(order.context, context)
        try:
            text = _within(context, order.dockerfile).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the context has no readable {order.dockerfile}: {shortened(error)}") from error
        image = _assembled(dockerfile.parse(text), context, images)
    labels = {**image.config["config"].get("Labels", {}), **order.labels}
    digest = images.write(_with(image, {"Labels": labels} if labels else {}))
    if order.push:
        for name in order.destinations:
            images.tag(digest, name)
    return digest


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
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 built, 1 anything else."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        images = os.environ.get("SEATRIAL_IMAGES", "")
        if not images:
            raise InvalidInput("SEATRIAL_IMAGES must name the folder of images; it comes with seatrial-registry")
        order = order_of(arguments, Path(os.environ.get("SEATRIAL_IO", "/io")))
        event("start", step="build_image", destinations=order.destinations)
        digest = build(order, oci.Layout(Path(images)))
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


def _here(path: str, io: Path) -> Path:
    place = PurePosixPath(path)
    return io / place.relative_to("/io") if place.is_relative_to("/io") else Path(path)


def _unpack(context: Path, folder: Path) -> None:
    try:
        with tarfile.open(context, "r:gz") as archive:
            archive.extractall(folder, filter="data")
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InvalidInput(
            f"the context {context} must be a tar.gz of files and folders: {shortened(error)}"
        ) from error


def _assembled(instructions: Sequence[Instruction], context: Path, images: oci.Layout) -> oci.Image:
    image, workdir = _base(instructions[0], images), "/"
    for instruction in instructions[1:]:
        settings: dict[str, Any] = image.config["config"]
        match instruction.word:
            case "COPY":
                files = _copied(instruction, context, settings.get("WorkingDir", workdir))
                image = replace(image, layers=(*image.layers, images.layer(files)))
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


def _base(instruction: Instruction, images: oci.Layout) -> oci.Image:
    name = _one(instruction)
    pinned = _PINNED.fullmatch(name)
    if name == "scratch":
        return oci.EMPTY
    if pinned is None:
        raise InvalidInput(
            f"line {instruction.line}: FROM must be pinned, repository@sha256:…; got {shortened(name)!r}"
        )
    return images.read(pinned.group(1))


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
