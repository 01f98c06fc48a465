"""`python -m infra.images build | push | list | check`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from infra.images import build, check, debian, listing, pruning, registry
from infra.images.built import Built
from infra.images.catalogue import IMAGES
from infra.images.place import cache
from seatrial.errors import InvalidInput, StepError


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 done, 78 something here is wrong, 75 something is away, 76 a digest differs."""
    given = _parser().parse_args(arguments)
    try:
        if os.geteuid() != 0:
            raise InvalidInput("images are made by root, since their files and mounts are root's: run this with sudo")
        given.run(given)
    except StepError as error:
        sys.stderr.write(f"images: {error}\n")
        return error.exit_code
    return 0


def _build(given: argparse.Namespace) -> None:
    if given.fresh:
        debian.forget(cache())
    images = build.build(cache(), lambda report: _say(listing.line(report)))
    if pruning.prune(images, cache()):
        _say("removed what this tree does not need")


def _current() -> dict[str, Built]:
    """Every image of this very tree. Where only code changed no package registry is asked: a cluster reaches none."""
    return build.build(cache(), lambda report: _say(listing.line(report)) if report.new else None)


def _push(given: argparse.Namespace) -> None:
    pushed = registry.push(_current(), given.registry, cache(), lambda made: _say(f"{made.name:<26} {made.digest}"))
    registry.write(pushed, given.output)
    _say(f"{len(pushed)} images at {given.registry}, written down in {given.output}")


def _list(given: argparse.Namespace) -> None:
    images = build.found(cache())
    if not images:
        raise InvalidInput("no image is built of this tree: run `python -m infra.images build`")
    _say(listing.as_json(images) if given.json else listing.table(images))
    left = [image.name for image in IMAGES if image.name not in images]
    if left:
        sys.stderr.write(f"not built of this tree: {', '.join(left)}\n")


def _check(_: argparse.Namespace) -> None:
    check.check(_current(), cache(), _say)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - asked for on the terminal


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.images", description="Every image of seatrial.")
    commands = parser.add_subparsers(required=True)
    builds = commands.add_parser("build", help="build what is not built yet")
    builds.add_argument("--fresh", action="store_true", help="unpack Debian's packages anew: take its updates")
    builds.set_defaults(run=_build)
    pushes = commands.add_parser("push", help="build what changed, and give a registry what it has not")
    pushes.add_argument("--registry", default=registry.PREFIX, help="registry/path (default: %(default)s)")
    pushes.add_argument(
        "--output", type=Path, default=registry.IMAGES_FILE, help="where repositories and digests are written down"
    )
    pushes.set_defaults(run=_push)
    lists = commands.add_parser("list", help="names, digests and sizes of what is built")
    lists.add_argument("--json", action="store_true", help="for programs")
    lists.set_defaults(run=_list)
    checks = commands.add_parser("check", help="start every image with a read-only root, without rights or network")
    checks.set_defaults(run=_check)
    return parser


if __name__ == "__main__":
    sys.exit(main())
