"""The command: `python -m infra.cluster`, from the checkout's folder, as root."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import Final

from infra.cluster import build as building
from infra.cluster import inside, installing, lifecycle, packages, status, versions
from infra.cluster.cluster import Cluster
from infra.cluster.places import CHECKOUT, cache, place_of
from seatrial.errors import InvalidInput, StepError


def main() -> int:
    """Run the command line; give back the exit code."""
    options = _parser().parse_args()
    try:
        _COMMANDS[options.command](options)
    except StepError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def say(line: str) -> None:
    """One line for people."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _built(options: argparse.Namespace) -> Cluster:
    wanted = versions.read()
    packages.ensure(wanted.packages, install=options.install or os.environ.get("CI") == "true", say=say)
    return Cluster(place_of(CHECKOUT), building.build(cache(), wanted, say), wanted, say)


def _found() -> Cluster:
    wanted = versions.read()
    return Cluster(place_of(CHECKOUT), building.found(cache(), wanted), wanted, say)


def _build(options: argparse.Namespace) -> None:
    installing.prepare(_built(options))
    say(f"every program lies in {cache()}")


def _up(options: argparse.Namespace) -> None:
    _require_root()
    lifecycle.up(_built(options))


def _down(options: argparse.Namespace) -> None:
    place = place_of(CHECKOUT)
    if place.root.exists():
        _require_root()
    # Without any program: the cache may be gone, the cluster must go too.
    lifecycle.down(Cluster(place, building.Programs(cache(), {}), versions.read(), say), wipe=options.wipe)


def _status(options: argparse.Namespace) -> None:
    _require_root()
    cluster = _found()
    sys.stdout.write(status.as_json(cluster) if options.json else status.as_table(cluster))


def _run(options: argparse.Namespace) -> None:
    _require_root()
    inside.run(_found(), options.run)


def _shell(_: argparse.Namespace) -> None:
    _require_root()
    inside.shell(_found())


def _part(options: argparse.Namespace) -> None:
    _require_root()
    acts: Mapping[str, Callable[[Cluster, str], None]] = {
        "start": lifecycle.start,
        "stop": lifecycle.stop,
        "restart": lifecycle.restart,
    }
    acts[options.command](_found(), options.part)


def _require_root() -> None:
    if os.geteuid() != 0:
        raise InvalidInput("the cluster needs root: it makes namespaces and cgroups")


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], None]]] = {
    "build": _build,
    "up": _up,
    "down": _down,
    "status": _status,
    "exec": _run,
    "shell": _shell,
    "start": _part,
    "stop": _part,
    "restart": _part,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.cluster", description="A real single-node test cluster.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("build", "build every program, or find it"), ("up", "bring the cluster up, or find it")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--install", action="store_true", help="install missing Debian packages")
    down = commands.add_parser("down", help="end the cluster")
    down.add_argument("--wipe", action="store_true", help="and forget what it stored")
    shown = commands.add_parser("status", help="every part, its process and its memory")
    shown.add_argument("--json", action="store_true")
    run = commands.add_parser("exec", help="run a command inside the cluster's network: exec -- CMD …")
    run.add_argument("run", nargs="+")
    commands.add_parser("shell", help="a shell inside the cluster's network")
    for name, text in (("start", "start a part"), ("stop", "stop a part"), ("restart", "stop and start a part")):
        commands.add_parser(name, help=text).add_argument("part")
    return parser


if __name__ == "__main__":
    sys.exit(main())
