"""The cluster's git server lets in a key over ssh and a token over http, and nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_cluster import ROOT, STATE, RealCluster
from sources import Source, source

from seatrial.adapters import git_access
from seatrial.adapters.git import GitSources
from seatrial.adapters.git_access import Access
from seatrial.errors import InvalidInput

KNOWN = sorted(path.name for path in (ROOT / "models").iterdir() if (path / "model.yaml").is_file())


@pytest.fixture(scope="module")
def repository(cluster: RealCluster) -> Iterator[Source]:
    with source(cluster) as checkout:
        yield checkout


@pytest.fixture(scope="module")
def given() -> dict[str, str]:
    """What the installation gives to resolve_release."""
    values: dict[str, str] = json.loads((STATE / "source.json").read_text())
    return values


@pytest.fixture(scope="module")
def by_ssh(cluster: RealCluster, given: dict[str, str]) -> tuple[str, Access]:
    """The node does not ask the cluster's DNS: the server's address stands for its name."""
    service = cluster.object("service", "git-server", "seatrial-git")
    assert service is not None
    address, host = service["spec"]["clusterIP"], given["SEATRIAL_SOURCE"].partition("@")[2].partition(":")[0]
    hosts = given[git_access.KNOWN_HOSTS].replace(host, address)
    access = git_access.from_environment({**given, git_access.KNOWN_HOSTS: hosts})
    return given["SEATRIAL_SOURCE"].replace(host, address), access


def test_a_key_reads_the_models_over_ssh(repository: Source, by_ssh: tuple[str, Access], tmp_path: Path) -> None:
    url, access = by_ssh
    sources = GitSources(url, access)
    assert sources.models("main") == KNOWN
    revision = sources.export(KNOWN[0], "main", tmp_path)
    assert revision == repository.git("rev-parse", "HEAD")
    assert (tmp_path / "model.yaml").read_bytes() == (ROOT / "models" / KNOWN[0] / "model.yaml").read_bytes()


def test_another_key_and_an_unknown_host_are_refused(by_ssh: tuple[str, Access]) -> None:
    url, access = by_ssh
    unknown = Access(ssh_key=access.ssh_key, known_hosts="elsewhere ssh-ed25519 AAAA")
    with pytest.raises(InvalidInput, match="Host key verification failed"):
        GitSources(url, unknown).models("main")
    stranger = Access(ssh_key=STRANGER, known_hosts=access.known_hosts)
    with pytest.raises(InvalidInput, match=r"Permission denied|invalid format"):
        GitSources(url, stranger).models("main")


def test_a_token_reads_the_models_over_http_and_no_or_another_token_does_not(
    repository: Source, given: dict[str, str], tmp_path: Path
) -> None:
    sources = GitSources(repository.url, Access(token=given[git_access.TOKEN]))
    assert sources.export(KNOWN[0], "main", tmp_path) == repository.git("rev-parse", "HEAD")
    for access in (Access(), Access(token="another")):
        with pytest.raises(InvalidInput):
            GitSources(repository.url, access).models("main")


STRANGER = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm9uZQ==\n-----END OPENSSH PRIVATE KEY-----\n"
