"""Builds what is not built yet: each image after those it stands on, two side by side."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

from infra.images import built, context, inputs
from infra.images.built import Built
from infra.images.catalogue import IMAGES, Image
from infra.images.inputs import Inputs
from infra.images.place import Cache
from infra.images.programs import Programs, required, run
from seatrial.errors import InvalidInput, StepError

SIDE_BY_SIDE: Final = 2
MEGABYTE: Final = 1_000_000
CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"
UV_CACHE: Final = "/var/cache/uv"


@dataclass(frozen=True, kw_only=True)
class Report:
    """How one image came about."""

    built: Built
    seconds: float
    new: bool


def build(cache: Cache, say: Callable[[Report], None], images: Sequence[Image] = IMAGES) -> dict[str, Built]:
    """Name → image, each built or found.

    Args:
        cache: Where things lie.
        say: Told of each image as it is done.
        images: What to build, with all that it stands on.

    Raises:
        InvalidInput: A program is missing, a Dockerfile cannot be built, or an image is larger than it may get.
        Unavailable: A registry of packages cannot be reached.
    """
    required("buildah", "skopeo", "mmdebstrap")
    with cache.shared("storage"):
        return in_order(images, lambda image, done: _made(image, done, cache), say)


def found(cache: Cache, images: Sequence[Image] = IMAGES) -> dict[str, Built]:
    """Name → image, of those that are built of this very tree; nothing is made."""
    by_name = {image.name: image for image in images}
    done: dict[str, Built] = {}
    for name in _order(images).static_order():
        known = inputs.of(by_name[name], done, cache)
        made = built.find(known.key, cache) if known is not None else None
        if made is not None:
            done[name] = made
    return done


def in_order(
    images: Sequence[Image],
    make: Callable[[Image, Mapping[str, Built]], Report],
    say: Callable[[Report], None],
) -> dict[str, Built]:
    """Make each image after its bases; after the first fault nothing new begins."""
    wanted, order = {image.name: image for image in images}, _order(images)
    order.prepare()
    done: dict[str, Built] = {}
    running: set[Future[Report]] = set()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        while order.is_active():
            running |= {pool.submit(make, wanted[name], dict(done)) for name in order.get_ready()}
            try:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                reports = [future.result() for future in finished]
            except BaseException:  # a Ctrl-C as well
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            for report in reports:
                done[report.built.name] = report.built
                say(report)
                order.done(report.built.name)
    return done


def check_size(image: Image, made: Built) -> None:
    """See that an image is no larger than the catalogue lets it be.

    Raises:
        InvalidInput: It is.
    """
    for what, size, most in (
        ("compressed", made.bytes, image.packed_mb),
        ("unpacked", made.unpacked_bytes, image.unpacked_mb),
    ):
        if size > most * MEGABYTE:
            raise InvalidInput(
                f"{image.name} has {size / MEGABYTE:.1f} MB {what}, more than the {most} MB that "
                "infra/images/catalogue.py gives it: leave something out, or raise the bound with a reason"
            )


def _order(images: Sequence[Image]) -> TopologicalSorter[str]:
    return TopologicalSorter({image.name: set(image.bases.values()) for image in images})


def _made(image: Image, done: Mapping[str, Built], cache: Cache) -> Report:
    started = time.monotonic()
    with cache.exclusive(image.short):
        inputs.fetch(image, cache)
        given = inputs.of(image, done, cache)
        if given is None:
            raise StepError(f"{image.name} was begun before what it stands on was done")
        known = built.find(given.key, cache)
        new = known is None or not _stored(known, cache)
        made = _build(given, cache) if known is None or new else known
    check_size(image, made)
    return Report(built=made, seconds=time.monotonic() - started, new=new)


def _stored(known: Built, cache: Cache) -> bool:
    """Whether buildah's storage still has it: other images stand on it."""
    names = Programs(cache).buildah("images", "--format", "{{.Name}}:{{.Tag}}", log=cache.log("storage"))
    return known.stored_name in names.split()


def _build(given: Inputs, cache: Cache) -> Built:
    image, key, programs = given.image, given.key, Programs(cache)
    log, name = cache.log(image.short), built.stored_name(image.name, key)
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.folder, prefix="context-") as folder:
        context.lay_out(given.files, Path(folder))
        programs.buildah(
            "bud", "--layers", "--isolation=chroot", "--format=oci", "--timestamp=0", "--identity-label=false",
            "--pull-never", f"--file={image.path}", f"--tag={name}",
            *(f"--build-arg={argument}={base.stored_name}" for argument, base in given.bases.items()),
            *(_installing() if "ARG UV_CACHE_DIR" in given.dockerfile else ()), folder, log=log,
        )  # fmt: skip
    layout = cache.layout(key)
    shutil.rmtree(layout, ignore_errors=True)
    layout.parent.mkdir(parents=True, exist_ok=True)
    to = [f"--dest-shared-blob-dir={cache.blobs}", programs.stored(name), f"oci:{layout}:{built.TAG}"]
    run(["skopeo", "copy", "--quiet", *to], log=log)
    inspected = json.loads(programs.buildah("inspect", "--type=image", name, log=log))
    unpacked_bytes = sum(layer["size"] for layer in json.loads(inspected["Manifest"])["layers"])
    made = built.read(image, key, cache, unpacked_bytes)
    built.write(made, cache)
    return made


def _installing() -> list[str]:
    """What a stage that installs packages gets of this machine, and no image keeps: certificates and uv's cache."""
    packages = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache" / "uv").absolute()
    packages.mkdir(parents=True, exist_ok=True)
    certificates = Path(os.environ.get("SSL_CERT_FILE") or CERTIFICATES)
    given = [f"--volume={packages}:{UV_CACHE}:rw", f"--build-arg=UV_CACHE_DIR={UV_CACHE}"]
    if certificates.is_file():
        given += [f"--volume={certificates}:{CERTIFICATES}:ro", f"--build-arg=SSL_CERT_FILE={CERTIFICATES}"]
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    return [*given, *([f"--build-arg=UV_DEFAULT_INDEX={index}"] if index else [])]
