"""Keys come from the environment, as PEM, and no message holds a secret."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from seatrial.adapters import keys, registry
from seatrial.errors import InvalidInput

KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([1] * 32))
CURVE = ec.generate_private_key(ec.SECP256R1())


def private(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def test_the_signing_key_is_read() -> None:
    found = keys.signing_key({keys.SIGNING_KEY: private(KEY)})
    assert found.private_bytes_raw() == bytes(32)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "secret",
        public(KEY),
        private(CURVE),
        private(KEY)[:60],
        KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")).decode(),
    ],
)
def test_what_is_no_signing_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_SIGNING_KEY") as caught:
        keys.signing_key({keys.SIGNING_KEY: text})
    body = text.strip().splitlines()[1:2] or ["secret"]
    assert body[0] not in str(caught.value).replace("secret seatrial-signing-key", "")


@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
def test_all_trusted_keys_are_read(between: str) -> None:
    found = keys.trusted_keys({keys.TRUSTED_KEYS: public(KEY) + between + public(OTHER)})
    assert [key.public_bytes_raw() for key in found] == [
        KEY.public_key().public_bytes_raw(),
        OTHER.public_key().public_bytes_raw(),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        private(KEY),
        public(CURVE),
        public(KEY) + public(CURVE),
        public(KEY) + "more",
        public(KEY) + public(OTHER)[:50],
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    ],
)
def test_one_key_that_cannot_be_trusted_spoils_the_list(text: str) -> None:
    with pytest.raises(InvalidInput, match="SEATRIAL_TRUSTED_KEYS"):
        keys.trusted_keys({keys.TRUSTED_KEYS: text})


BASE = "localhost:5000/seatrial/triton@sha256:" + "0" * 64


@pytest.mark.parametrize("prefix", ["localhost/seatrial", "localhost:5000/a/b", "ghcr.io/acme/sea-trial"])
def test_a_registry_is_read(prefix: str) -> None:
    found = registry.from_environment({registry.REGISTRY: prefix, registry.SERVING_BASE: BASE})
    assert (found.prefix, found.serving_base) == (prefix, BASE)


@pytest.mark.parametrize(
    ("prefix", "base"),
    [
        ("", BASE),
        ("Localhost/x", BASE),
        ("localhost/", BASE),
        ("https://localhost/x", BASE),
        ("localhost/x y", BASE),
        ("localhost/x\nRUN id", BASE),
        ("localhost/x", ""),
        ("localhost/x", "localhost/triton:24.10"),
        ("localhost/x", BASE[:-1]),
        ("localhost/x", BASE + "\nRUN id"),
    ],
)
def test_a_registry_or_base_that_is_not_pinned_is_refused(prefix: str, base: str) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        registry.from_environment({registry.REGISTRY: prefix, registry.SERVING_BASE: base})
