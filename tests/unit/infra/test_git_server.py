from __future__ import annotations

import stat
from pathlib import Path

import yaml

from infra.git_server import __main__ as git_server
from infra.install.facts import Image
from seatrial.adapters import git_access


def test_keys_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = git_server.kept_keys(path)
    assert git_server.kept_keys(path) == keys
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keys["host_public"] != keys["client_public"]


def test_what_is_written_for_the_installation_is_what_resolve_release_reads(tmp_path: Path) -> None:
    keys = git_server.kept_keys(tmp_path / "keys.json")
    access = git_access.from_environment(git_server.source(keys))
    assert access.ssh_key == keys["client"]
    assert access.known_hosts == f"[{git_server.HOST}]:2222 {keys['host_public']}\n"


def test_the_server_runs_by_digest_with_its_own_key_and_lets_the_one_client_in(tmp_path: Path) -> None:
    keys = git_server.kept_keys(tmp_path / "keys.json")
    files = git_server.overlay(keys, Image(repository="localhost:5000/x", digest="sha256:" + "a" * 64), tmp_path)
    (image,) = yaml.safe_load(files["kustomization.yaml"])["images"]
    assert image == {"name": "seatrial/git-server", "newName": "localhost:5000/x", "digest": "sha256:" + "a" * 64}
    given = yaml.safe_load(files["secret.yaml"])["stringData"]
    assert given["authorized_keys"].strip() == keys["client_public"]
    assert given["ssh_host_ed25519_key"] == keys["host"]
    assert "BEGIN OPENSSH PRIVATE KEY" in keys["host"]
