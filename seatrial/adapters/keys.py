"""The keys that sign and check verdicts, from the mounted environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from seatrial.errors import InvalidInput

SIGNING_KEY: Final = "SEATRIAL_SIGNING_KEY"
TRUSTED_KEYS: Final = "SEATRIAL_TRUSTED_KEYS"

_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)


def signing_key(environment: Mapping[str, str] = os.environ) -> Ed25519PrivateKey:
    """The key that this step signs with: PKCS8 PEM, Ed25519.

    Raises:
        InvalidInput: It is not mounted, or no such key. No message holds any of it.
    """
    text = environment.get(SIGNING_KEY, "")
    if not text.strip():
        raise InvalidInput(f"this step signs its verdict and needs {SIGNING_KEY}; mount secret seatrial-signing-key")
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidInput(f"{SIGNING_KEY} must hold an unencrypted PKCS8 PEM; it cannot be read as one") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(f"{SIGNING_KEY} must hold an Ed25519 key; got {type(key).__name__}")
    return key


def trusted_keys(environment: Mapping[str, str] = os.environ) -> tuple[Ed25519PublicKey, ...]:
    """The keys whose verdicts are believed: SubjectPublicKeyInfo PEMs, one after the other; at least one.

    Raises:
        InvalidInput: None is mounted, or one cannot be read or is no Ed25519 key.
    """
    text = environment.get(TRUSTED_KEYS, "")
    blocks = _PEM.findall(text)
    if not blocks or _PEM.sub("", text).strip():
        raise InvalidInput(
            f"{TRUSTED_KEYS} must hold public keys in PEM and nothing else; got {len(blocks)} of them: "
            "mount config map seatrial-trusted-keys"
        )
    return tuple(_public(block, place) for place, block in enumerate(blocks, start=1))


def _public(block: str, place: int) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(block.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidInput(f"key {place} of {TRUSTED_KEYS} cannot be read") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInput(f"key {place} of {TRUSTED_KEYS} must be an Ed25519 key; got {type(key).__name__}")
    return key
