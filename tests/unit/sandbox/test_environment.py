"""What steps find in their environment."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from seatrial.app.sandbox import environment
from seatrial.app.sandbox.places import PORTS, Home

PORT = {name: 21_000 + index for index, name in enumerate(PORTS)}


def values(tmp_path: Path) -> environment.Environment:
    return environment.environment(
        Home(tmp_path), PORT, source=Path("/src"), base="localhost/base@sha256:" + "a" * 64, triton=Path("/t")
    )


def test_every_need_has_its_values(tmp_path: Path) -> None:
    found = values(tmp_path)
    assert {name: set(entries) for name, entries in found.items()} == {
        "seatrial-store": {"SEATRIAL_STORE", "AWS_ENDPOINT_URL_S3", "AWS_REGION"},
        "seatrial-store-credentials": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
        "seatrial-cluster": {
            "SEATRIAL_NAMESPACE",
            "SEATRIAL_WORKFLOWS_NAMESPACE",
            "SEATRIAL_REPLICAS_MIN",
            "KUBECONFIG",
        },
        "seatrial-gateway": {"SEATRIAL_GATEWAY_URL", "SEATRIAL_GATEWAY_METRICS_URL", "SEATRIAL_PROMOTE_ON_REPLAY"},
        "seatrial-tracking": {"MLFLOW_TRACKING_URI"},
        "seatrial-signing-key": {"SEATRIAL_SIGNING_KEY"},
        "seatrial-trusted-keys": {"SEATRIAL_TRUSTED_KEYS"},
        "seatrial-registry": {"SEATRIAL_REGISTRY", "SEATRIAL_SERVING_BASE", "SEATRIAL_IMAGES"},
        "seatrial-source": {"SEATRIAL_SOURCE", "SEATRIAL_STEP_IMAGES"},
        "seatrial-triton": {"SEATRIAL_TRITON"},
    }
    assert all(text for entries in found.values() for text in entries.values())


def test_the_trusted_key_is_the_signing_keys_other_half(tmp_path: Path) -> None:
    found = values(tmp_path)
    private = serialization.load_pem_private_key(found["seatrial-signing-key"]["SEATRIAL_SIGNING_KEY"].encode(), None)
    public = serialization.load_pem_public_key(found["seatrial-trusted-keys"]["SEATRIAL_TRUSTED_KEYS"].encode())
    assert isinstance(private, Ed25519PrivateKey)
    assert isinstance(public, Ed25519PublicKey)
    public.verify(private.sign(b"text"), b"text")


def test_keys_are_made_once_and_are_their_owners_alone(tmp_path: Path) -> None:
    assert values(tmp_path) == values(tmp_path)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secrets").iterdir()}
    assert modes == {"signing-key.pem": 0o600, "store.json": 0o600}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for path in (
        "seatrial/a.py",
        "seatrial/app/cli.py",
        "steps/x/y.py",
        "infra/serving/m.py",
        "locks/l.txt",
        "docs/d.md",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("seatrial/a.py", True),
        ("steps/x/y.py", True),
        ("infra/serving/m.py", True),
        ("locks/l.txt", True),
        ("seatrial/app/cli.py", False),
        ("docs/d.md", False),
        ("seatrial/__pycache__/a.pyc", False),
    ],
)
def test_the_step_images_digest_counts_what_goes_into_them(checkout: Path, path: str, counts: bool) -> None:  # noqa: FBT001
    before = environment.step_images_digest(checkout)
    (checkout / path).parent.mkdir(exist_ok=True)
    (checkout / path).write_text("changed")
    assert (environment.step_images_digest(checkout) != before) is counts
