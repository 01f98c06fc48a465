"""Debian packages that are missing."""

from __future__ import annotations

import pytest

from infra.cluster import packages
from seatrial.errors import InvalidInput


def test_a_package_is_missing_when_one_of_its_programs_is_not_found() -> None:
    wanted = {"runc": "runc", "nft": "nftables", "mount": "mount"}
    assert packages.missing(wanted, {"mount": "/bin/mount", "runc": ""}.get) == ["nftables", "runc"]
    assert packages.missing(wanted, lambda program: f"/bin/{program}") == []


def test_what_is_missing_is_named_with_the_line_that_installs_it() -> None:
    said: list[str] = []
    with pytest.raises(InvalidInput) as caught:
        packages.ensure({"no-such-program-b": "bee", "no-such-program-a": "ay"}, install=False, say=said.append)
    assert str(caught.value) == (
        "missing Debian packages: ay, bee; run as root: "
        "apt-get update && apt-get install --yes --no-install-recommends ay bee"
    )
    assert caught.value.exit_code == 78
    assert said == []


def test_nothing_is_installed_when_nothing_is_missing() -> None:
    packages.ensure({"sh": "dash"}, install=True, say=pytest.fail)
