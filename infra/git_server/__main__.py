"""`python -m infra.git_server`, run from the repository's root inside the cluster's network, before `infra.install`.

It starts the git server in the cluster and writes what resolve_release needs to reach it into `source.json`, where
`python -m infra.install` looks for it.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from infra.cluster import places
from infra.install.apply import Kubectl, program
from infra.install.facts import CHECKOUT, SOURCE, SOURCE_FILE, STATE, Image, read_images
from seatrial.adapters import git_access
from seatrial.app.sandbox.places import read_json, write, write_json
from seatrial.errors import InvalidInput, Unavailable

NAMESPACE: Final = "seatrial-git"
IMAGE: Final = "seatrial/git-server"
HOST: Final = f"git-server.{NAMESPACE}.svc.cluster.local"
SSH_PORT: Final = 2222
URL: Final = f"ssh://git@{HOST}:{SSH_PORT}/srv/git/models.git"
READY_S: Final = 60
FOLDER: Final = CHECKOUT / "infra" / "git_server"

Keys = Mapping[str, str]


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 it runs, 78 something is missing or refused, 75 the cluster does not answer."""
    parser = argparse.ArgumentParser(prog="python -m infra.git_server", description=__doc__)
    parser.add_argument("--context", default=places.CONTEXT, help=f"of the kubeconfig; by default {places.CONTEXT}")
    given = parser.parse_args(arguments)
    kubeconfig = Path(os.environ.get("KUBECONFIG") or STATE / "kubeconfig")
    folder = STATE / "git-server"
    try:
        keys = kept_keys(folder / "keys.json")
        for name, text in overlay(keys, image(STATE / "images.json"), folder).items():
            write(folder / name, text.encode(), mode=0o600)
        start(Kubectl(program(STATE / "bin"), kubeconfig, given.context), folder)
        write_json(STATE / SOURCE_FILE, source(keys), mode=0o600)
    except (InvalidInput, Unavailable) as error:
        sys.stderr.write(f"git server: {error}\n")
        return error.exit_code
    sys.stdout.write(f"{URL} is served, and {STATE / SOURCE_FILE} says how it is reached\n")
    return 0


def image(path: Path) -> Image:
    """The server's image, as it was pushed.

    Raises:
        InvalidInput: It was not.
    """
    images = read_images(path)
    if IMAGE not in images:
        raise InvalidInput(f"{IMAGE} was not pushed: run `python -m infra.images push`")
    return images[IMAGE]


def kept_keys(path: Path) -> Keys:
    """The server's and its one client's keys and the token, OpenSSH's formats; made on the first call and kept."""
    if not path.is_file():
        host, client = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        keys = {
            "host": _private(host),
            "host_public": _public(host),
            "client": _private(client),
            "client_public": _public(client),
            "token": secrets.token_urlsafe(24),
        }
        write_json(path, keys, mode=0o600)
    return {name: str(value) for name, value in read_json(path).items()}


def overlay(keys: Keys, of: Image, folder: Path) -> dict[str, str]:
    """Name → text of every file that kubectl applies."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "git-server", "namespace": NAMESPACE},
        "stringData": {
            "token": keys["token"],
            "authorized_keys": keys["client_public"] + "\n",
            "ssh_host_ed25519_key": keys["host"],
        },
    }
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(FOLDER, folder), "secret.yaml"],
        "images": [{"name": IMAGE, "newName": of.repository, "digest": of.digest}],
    }
    return {"secret.yaml": yaml.safe_dump(secret), "kustomization.yaml": yaml.safe_dump(kustomization)}


def start(kubectl: Kubectl, folder: Path) -> None:
    """Apply it and wait until it serves.

    Raises:
        Unavailable: The cluster does not answer, refuses it, or it does not get ready.
    """
    for arguments in (
        ("apply", "--server-side", "--validate=strict", "--force-conflicts", "-k", str(folder)),
        ("-n", NAMESPACE, "rollout", "status", "deployment/git-server", f"--timeout={READY_S}s"),
    ):
        done = kubectl.run(*arguments)
        if done.returncode != 0:
            raise Unavailable(f"kubectl {' '.join(arguments[:4])} failed: {done.stderr.strip()}")


def source(keys: Keys) -> dict[str, str]:
    """The environment of resolve_release: over ssh with the client's key, and a token for who prefers http."""
    return {
        SOURCE: URL,
        git_access.SSH_KEY: keys["client"],
        git_access.KNOWN_HOSTS: f"[{HOST}]:{SSH_PORT} {keys['host_public']}\n",
        git_access.TOKEN: keys["token"],
    }


def _private(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def _public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


if __name__ == "__main__":
    sys.exit(main())
