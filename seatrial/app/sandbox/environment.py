"""What steps find in their environment: the ConfigMaps and Secrets of the cluster, with the sandbox's values."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seatrial import digests
from seatrial.app.sandbox.places import BUCKET, HOST, NAMESPACE, Home, read_json, write, write_json
from seatrial.app.sandbox.triton import ROOT

Environment = dict[str, dict[str, str]]
"""Name of a ConfigMap or Secret → its values."""

_PEM = serialization.Encoding.PEM


def environment(home: Home, ports: Mapping[str, int], *, source: Path, base: str, triton: Path) -> Environment:
    """Every environment source that a step may ask for.

    Args:
        home: Of the sandbox; its keys are made here, once.
        ports: Where its parts listen.
        source: Where models come from.
        base: The serving base image, `repository@sha256:…`.
        triton: The executable that behaves as tritonserver.
    """
    key = signing_key(home)
    return {
        "seatrial-store": {
            "SEATRIAL_STORE": f"s3://{BUCKET}",
            "AWS_ENDPOINT_URL_S3": f"http://{HOST}:{ports['s3']}",
            "AWS_REGION": "us-east-1",
        },
        "seatrial-store-credentials": store_credentials(home),
        "seatrial-cluster": {
            "SEATRIAL_NAMESPACE": NAMESPACE,
            "SEATRIAL_WORKFLOWS_NAMESPACE": NAMESPACE,
            "SEATRIAL_REPLICAS_MIN": "1",
            "KUBECONFIG": str(home.kubeconfig),
        },
        "seatrial-gateway": {
            "SEATRIAL_GATEWAY_URL": f"http://{HOST}:{ports['gateway']}",
            "SEATRIAL_GATEWAY_METRICS_URL": f"http://{HOST}:{ports['gateway_metrics']}/metrics",
            "SEATRIAL_PROMOTE_ON_REPLAY": "true",
        },
        "seatrial-tracking": {"MLFLOW_TRACKING_URI": f"http://{HOST}:{ports['tracking']}"},
        "seatrial-signing-key": {"SEATRIAL_SIGNING_KEY": key},
        "seatrial-trusted-keys": {"SEATRIAL_TRUSTED_KEYS": public_key(key)},
        "seatrial-registry": {
            "SEATRIAL_REGISTRY": "localhost/seatrial",
            "SEATRIAL_SERVING_BASE": base,
            "SEATRIAL_IMAGES": str(home.images),
        },
        "seatrial-source": {"SEATRIAL_SOURCE": str(source), "SEATRIAL_STEP_IMAGES": step_images_digest(ROOT)},
        "seatrial-triton": {"SEATRIAL_TRITON": str(triton)},
    }


def signing_key(home: Home) -> str:
    """The sandbox's Ed25519 key, PKCS8 PEM; made on the first call and kept."""
    path = home.secrets / "signing-key.pem"
    if not path.exists():
        key = Ed25519PrivateKey.generate()
        write(
            path, key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()), mode=0o600
        )
    return path.read_text()


def public_key(private: str) -> str:
    """The public half of a PKCS8 PEM, as SubjectPublicKeyInfo PEM."""
    key = serialization.load_pem_private_key(private.encode(), password=None)
    return key.public_key().public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def store_credentials(home: Home) -> dict[str, str]:
    """The one identity that the object store knows; made on the first call and kept."""
    path = home.secrets / "store.json"
    if not path.exists():
        pair = {"AWS_ACCESS_KEY_ID": "seatrial", "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20)}
        write_json(path, pair, mode=0o600)
    return {name: str(value) for name, value in read_json(path).items()}


def step_images_digest(root: Path) -> str:
    """What stands for the digests of the step images on a laptop: all that goes into them, by content.

    `seatrial/app` is in no image and does not count.
    """
    sha = hashlib.sha256()
    for folder in ("seatrial", "steps", "infra/serving", "locks"):
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and "__pycache__" not in relative.parts and relative.parts[:2] != ("seatrial", "app"):
                sha.update(f"{relative.as_posix()}\0{digests.of_file(path)}\n".encode())
    return f"sha256:{sha.hexdigest()}"


def kubeconfig(port: int) -> dict[str, Any]:
    """A kubeconfig whose one cluster is the control API."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sandbox",
        "clusters": [{"name": "sandbox", "cluster": {"server": f"http://{HOST}:{port}"}}],
        "users": [{"name": "sandbox", "user": {}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox", "namespace": NAMESPACE}}],
    }
