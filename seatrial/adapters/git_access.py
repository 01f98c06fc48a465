"""How git gets into a private repository: a deploy key over SSH, or a token over HTTP(S), from the mounted environment.

Nothing of it is ever an argument, a part of a URL or a file that outlives the call. Without any of it git finds its own
way: on a laptop the person's agent and credential helper.
"""

from __future__ import annotations

import base64
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from seatrial.errors import InvalidInput

USER: Final = "SEATRIAL_SOURCE_USER"
TOKEN: Final = "SEATRIAL_SOURCE_TOKEN"  # noqa: S105 - a variable's name
SSH_KEY: Final = "SEATRIAL_SOURCE_SSH_KEY"
KNOWN_HOSTS: Final = "SEATRIAL_SOURCE_KNOWN_HOSTS"
"""Keys of the Secret seatrial-source-credentials; all optional."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Credentials for one repository; none of them is shown."""

    user: str = "git"
    """Before the token; some forges want a certain one, like x-access-token."""
    token: str = field(default="", repr=False)
    ssh_key: str = field(default="", repr=False)
    """An OpenSSH private key without a passphrase."""
    known_hosts: str = field(default="", repr=False)
    """Lines of known_hosts(5) for the repository's host."""

    @contextmanager
    def environment(self, url: str) -> Iterator[Mapping[str, str]]:
        """What git's environment needs to reach `url`, inside the block."""
        with tempfile.TemporaryDirectory(prefix="git-access-") as folder:
            yield {**self._by_token(url), **self._by_key(Path(folder))}

    def _by_token(self, url: str) -> dict[str, str]:
        """A header for this one host. Source: git-config(1), http.<url>.extraHeader and GIT_CONFIG_COUNT."""
        place = urlsplit(url)
        if not self.token or place.scheme not in {"http", "https"}:
            return {}
        secret = base64.b64encode(f"{self.user}:{self.token}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{place.scheme}://{place.netloc.rpartition('@')[2]}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {secret}",
        }

    def _by_key(self, folder: Path) -> dict[str, str]:
        """The key as a file that only we can read; an unknown host is refused, never asked about."""
        if not self.ssh_key:
            return {}
        key, hosts = folder / "key", folder / "known_hosts"
        key.touch(mode=0o600)
        key.write_text(self.ssh_key.rstrip("\n") + "\n")
        hosts.write_text(self.known_hosts.rstrip("\n") + "\n")
        options = ("IdentitiesOnly=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={hosts}", "BatchMode=yes")
        command = ["ssh", "-F", "none", "-i", str(key), *(text for option in options for text in ("-o", option))]
        return {"GIT_SSH_COMMAND": shlex.join(command)}


def from_environment(environment: Mapping[str, str] = os.environ) -> Access:
    """What the Secret seatrial-source-credentials gives.

    Raises:
        InvalidInput: A key without known hosts: whoever answers would be believed.
    """
    key, hosts = environment.get(SSH_KEY, ""), environment.get(KNOWN_HOSTS, "")
    if key.strip() and not hosts.strip():
        raise InvalidInput(
            f"{SSH_KEY} is set and {KNOWN_HOSTS} is not: put the lines of `ssh-keyscan <host>`, checked with what the "
            "forge publishes, into the Secret seatrial-source-credentials"
        )
    return Access(
        user=environment.get(USER, "") or "git",
        token=environment.get(TOKEN, "").strip(),
        ssh_key=key if key.strip() else "",
        known_hosts=hosts,
    )
