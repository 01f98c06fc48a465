from __future__ import annotations

import base64
import shlex
import stat
from pathlib import Path

import pytest

from seatrial.adapters import git_access
from seatrial.adapters.git_access import Access
from seatrial.errors import InvalidInput


def test_a_token_goes_to_the_one_host_as_a_header_and_to_no_command_line() -> None:
    with Access(user="ci", token="s3cret").environment("https://me@git.example/team/models.git") as given:
        assert given["GIT_CONFIG_KEY_0"] == "http.https://git.example/.extraHeader"
        scheme, _, value = given["GIT_CONFIG_VALUE_0"].rpartition(" ")
        assert (scheme, base64.b64decode(value)) == ("Authorization: Basic", b"ci:s3cret")
        assert "GIT_SSH_COMMAND" not in given


@pytest.mark.parametrize("url", ["ssh://git@git.example/m.git", "git@git.example:m.git", "file:///m.git"])
def test_a_token_is_not_given_to_what_is_not_http(url: str) -> None:
    with Access(token="s3cret").environment(url) as given:
        assert given == {}


def test_a_key_is_a_file_that_only_we_can_read_and_is_gone_afterwards() -> None:
    with Access(ssh_key="KEY", known_hosts="git.example ssh-ed25519 AAAA").environment(
        "git@git.example:m.git"
    ) as given:
        command = shlex.split(given["GIT_SSH_COMMAND"])
        key = Path(command[command.index("-i") + 1])
        assert key.read_text() == "KEY\n"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert "StrictHostKeyChecking=yes" in command
        hosts = next(Path(option.partition("=")[2]) for option in command if option.startswith("UserKnownHostsFile="))
        assert hosts.read_text() == "git.example ssh-ed25519 AAAA\n"
    assert not key.exists()


def test_a_key_without_known_hosts_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_SOURCE_KNOWN_HOSTS is not"):
        git_access.from_environment({git_access.SSH_KEY: "KEY", git_access.KNOWN_HOSTS: " \n"})


def test_credentials_are_not_shown() -> None:
    shown = repr(Access(token="s3cret", ssh_key="KEY", known_hosts="HOSTS"))
    assert not any(text in shown for text in ("s3cret", "KEY", "HOSTS"))
