"""`python -m infra.install`, run from the repository's root, inside the cluster's network."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from infra.cluster import places
from infra.install import facts, overlay
from infra.install.apply import Kubectl, apply, program, write_overlay
from infra.install.facts import STATE, Addresses
from seatrial.app.sandbox.places import write_json
from seatrial.errors import StepError

ADDRESSES: Final = Addresses(
    node=places.NODE_ADDRESS,
    api_port=6443,
    store=places.S3,
    tracking=places.TRACKING,
    registry=places.REGISTRY,
    gateway=places.GATEWAY,
    gateway_metrics=places.GATEWAY_METRICS,
    bucket=places.BUCKET,
)
CREDENTIALS: Final = "credentials.json"
"""Of the store, for whoever looks into it from outside."""


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 installed, 78 something is missing or refused, 75 the cluster does not answer."""
    given = _parser().parse_args(arguments)
    folder = STATE / "overlay"
    try:
        known = facts.gathered(ADDRESSES, source=given.source)
        write_json(STATE / CREDENTIALS, dict(known.store_credentials), mode=0o600)
        write_overlay(overlay.files(known, folder), folder)
        sys.stdout.write(f"wrote {folder}\n")
        if not given.write:
            kubectl = Kubectl(program(STATE / "bin"), given.kubeconfig, given.context)
            sys.stdout.write("".join(f"{line}\n" for line in apply(kubectl, folder)))
    except StepError as error:
        sys.stderr.write(f"install: {error}\n")
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.install", description=__doc__)
    kubeconfig = Path(os.environ.get("KUBECONFIG") or STATE / "kubeconfig")
    parser.add_argument("--context", default=places.CONTEXT, help=f"of the kubeconfig; by default {places.CONTEXT}")
    parser.add_argument("--kubeconfig", type=Path, default=kubeconfig, help=f"by default {kubeconfig}")
    parser.add_argument("--source", metavar="URL", help="git repository of the models; kept for the next time")
    parser.add_argument("--write", action="store_true", help="write the overlay and apply nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
