"""Fetches what the cluster's tests need of package registries, which its network does not reach: run before them."""

from __future__ import annotations

from real_cluster import ROOT
from sources import MODEL

from seatrial.app import sandbox
from seatrial.app.data import prepared


def main() -> None:
    """The example's rows, and Triton for the laptop that the cluster is compared with."""
    home = ROOT / ".seatrial"
    prepared(ROOT / "models" / MODEL, home=home, say=print)
    sandbox.install_triton(home, print)


if __name__ == "__main__":
    main()
