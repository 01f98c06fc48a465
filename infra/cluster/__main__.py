"""The command: `python -m infra.cluster`, from the checkout's folder, as root."""

from __future__ import annotations

import argparse
import os
import sys

from infra.cluster import anchor, lifecycle, packages, versions
from infra.cluster import build as building
from infra.cluster.places import CHECKOUT, cache, place_of
from seatrial.errors import StepError, Unavailable


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.cluster")
    commands = parser.add_subparsers(dest="command", required=True)
    b = commands.add_parser("build")
    b.add_argument("--install", action="store_true")
    u = commands.add_parser("up")
    u.add_argument("--install", action="store_true")
    d = commands.add_parser("down")
    d.add_argument("--wipe", action="store_true")
    for n in ("start", "stop", "restart"):
        p = commands.add_parser(n)
        p.add_argument("name")
    e = commands.add_parser("exec")
    e.add_argument("argv", nargs=argparse.REMAINDER)
    a = parser.parse_args()
    try:
        return run(a)
    except StepError as error:
        say(str(error))
        return error.exit_code


def say(line: str) -> None:
    sys.stderr.write(line + "\n")


def run(a: argparse.Namespace) -> int:
    v = versions.read()
    place = place_of(CHECKOUT)
    if a.command in ("build", "up"):
        packages.ensure(v.packages, install=a.install or os.environ.get("CI") == "true", say=say)
        programs = building.build(cache(), v, say)
        if a.command == "build":
            return 0
    else:
        programs = building.found(cache(), v)
    cluster = lifecycle.Cluster(place, programs, v, say)
    if a.command == "up":
        lifecycle.up(cluster)
    elif a.command == "down":
        lifecycle.down(cluster, wipe=a.wipe)
    elif a.command in ("start", "stop", "restart"):
        getattr(lifecycle, a.command)(cluster, a.name)
    elif a.command == "exec":
        first = anchor.find(place)
        if first is None:
            raise Unavailable("the cluster is not up")
        anchor.enter(first)
        argv = a.argv[1:] if a.argv[:1] == ["--"] else a.argv
        env = {
            **os.environ,
            "KUBECONFIG": str(place.kubeconfig),
            "KUBECACHEDIR": str(place.root / "kubectl-cache"),
            "PATH": f"{place.bin}:{os.environ['PATH']}",
            "CONTAINERD_ADDRESS": str(place.containerd_socket),
            "CONTAINERD_NAMESPACE": "k8s.io",
        }
        os.execvpe(argv[0], argv, env)
    return 0


if __name__ == "__main__":
    sys.exit(main())
