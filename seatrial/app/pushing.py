"""Images in a registry, by skopeo: where the builder stands in kaniko's place.

Of the base only the manifest and the config are fetched, its layers only if the registry lacks them where the image
goes. Layers are files all the way, never in memory. Source: skopeo-copy(1), skopeo-inspect(1) of 1.9.
"""

from __future__ import annotations

import ipaddress
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from seatrial.app import oci
from seatrial.errors import IntegrityError, InvalidInput, Unavailable, shortened

WITHIN_S: Final = 1800
CREDENTIALS: Final = "/kaniko/.docker"
"""Kaniko's $DOCKER_CONFIG."""
BUILT: Final = "built"
"""The name in the layout of what is pushed."""

_PRIVATE: Final = tuple(
    ipaddress.ip_network(network) for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.1/32")
)
_FATAL = re.compile(r'level=fatal msg="((?:[^"\\]|\\.)*)"')
_SAID_TWICE = re.compile(r'^Error parsing image name "[^"]*": ')
_NOT_THERE = re.compile(r"manifest unknown|name unknown|no such file or directory", re.IGNORECASE)
"""What trying again does not help; a layer that is no file here is one that the registry lacks."""


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Registries, and the layout in which an image is made for them."""

    layout: Path
    insecure: frozenset[str] = frozenset()
    """Registries that may speak plain http, beside those of `may_be_plain`."""
    download_retries: int = 0
    push_retries: int = 0

    def fetch(self, name: str) -> None:
        """Put the manifest and the config of `name`, repository@sha256:…, into the layout, checked.

        Raises:
            InvalidInput: The registry has no such image.
            Unavailable: The registry does not answer.
            IntegrityError: It gives something else than was named.
        """
        images, (repository, _, digest) = oci.Layout(self.layout), name.partition("@")
        self._put(images, digest, self._inspect(name, "--raw"))
        config = images.manifest(digest)["config"]["digest"]
        self._put(images, config, self._inspect(f"{repository}@{digest}", "--raw", "--config"))

    def push(self, digest: str, destination: str, base: str | None) -> None:
        """Give the registry the layout's image `digest` under the name `destination`.

        Args:
            digest: Of the image; it is the same in the registry.
            destination: registry/repository:tag
            base: What the image was built on, repository@sha256:…; None: from nothing.

        Raises:
            InvalidInput: The registry refuses what is pushed.
            Unavailable: The registry does not answer, or takes no push now.
            IntegrityError: The registry has the image under another digest.
        """
        images = oci.Layout(self.layout)
        images.tag(digest, BUILT)
        missing = [layer.digest for layer in images.read(digest).layers if not images.holds(layer.digest)]
        try:
            self._push(digest, destination)
        except InvalidInput:
            if base is None or not missing:
                raise
            self._fetch_whole(base)  # the registry lacks a layer of the base where the image goes
            self._push(digest, destination)

    def _inspect(self, name: str, *what: str) -> bytes:
        retries = f"--retry-times={self.download_retries}"
        return self._skopeo("inspect", *what, retries, *self._tls(name, "--"), f"docker://{name}", about=name)

    def _fetch_whole(self, base: str) -> None:
        self._skopeo(
            "copy", "--quiet", "--preserve-digests", f"--retry-times={self.download_retries}",
            *self._tls(base, "--src-"), f"docker://{base}", f"oci:{self.layout}:base", about=base,
        )  # fmt: skip

    def _push(self, digest: str, destination: str) -> None:
        digest_file = self.layout / "pushed"
        self._skopeo(
            "copy", "--quiet", "--preserve-digests", f"--digestfile={digest_file}",
            f"--retry-times={self.push_retries}", *self._tls(destination, "--dest-"),
            f"oci:{self.layout}:{BUILT}", f"docker://{destination}", about=destination,
        )  # fmt: skip
        pushed = digest_file.read_text().strip()
        if pushed != digest:
            raise IntegrityError(
                f"{destination} is {shortened(pushed)} in the registry, not the {digest} that was built"
            )

    def _put(self, images: oci.Layout, digest: str, data: bytes) -> None:
        got = images.put(data)["digest"]
        if got != digest:
            raise IntegrityError(f"the registry gave {got} where {digest} was asked for")

    def _tls(self, name: str, prefix: str) -> list[str]:
        registry = name.partition("/")[0]
        plain = registry in self.insecure or may_be_plain(registry)
        return [f"{prefix}tls-verify=false"] if plain else []

    def _skopeo(self, command: str, *arguments: str, about: str) -> bytes:
        credentials = Path(os.environ.get("DOCKER_CONFIG") or CREDENTIALS, "config.json")
        known = [f"--authfile={credentials}"] if credentials.is_file() else []
        try:
            done = subprocess.run(
                ["skopeo", "--insecure-policy", command, *known, *arguments],
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=WITHIN_S,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{about}: the registry did not end a {command} within {WITHIN_S} s") from error
        except OSError as error:
            raise InvalidInput(f"skopeo, which talks to registries, cannot be started: {shortened(error)}") from error
        if done.returncode != 0:
            raise _failure(command, about, done.stderr.decode(errors="replace"))
        return done.stdout


def may_be_plain(registry: str) -> bool:
    """Whether kaniko tries plain http at this `host:port` without being told: loopback and private addresses.

    Source: google/go-containerregistry, pkg/name/registry.go, Registry.Scheme.
    """
    host = registry.rpartition(":")[0] if re.search(r":\d+$", registry) else registry
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address == ipaddress.IPv6Address("::1") or any(address in network for network in _PRIVATE)


def _failure(command: str, about: str, said: str) -> InvalidInput | Unavailable:
    found: list[Any] = _FATAL.findall(said)
    reason = _SAID_TWICE.sub("", found[-1].replace('\\"', '"')) if found else said or "no reason given"
    kind = InvalidInput if _NOT_THERE.search(reason) else Unavailable
    return kind(
        f"{about}: the registry cannot {'be pushed to' if command == 'copy' else 'be read'}: {shortened(reason)}"
    )
