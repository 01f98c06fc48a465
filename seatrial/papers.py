"""A bundle's papers in the store: where they lie, and the one thing that is read of them without a signature."""

from __future__ import annotations

import json

from seatrial import bundle, digests
from seatrial.errors import IntegrityError
from seatrial.ports import Store


def key(digest: str, name: str) -> str:
    """Where the store keeps a paper of the bundle with this digest."""
    return f"{bundle.papers_prefix(digest)}/{name}"


def golden_request(store: Store, digest: str) -> bytes:
    """The body of a request that the bundle's model is known to answer.

    It is only sent, and who answers is counted: no verdict is asked for, because going back must not wait for one.

    Raises:
        IntegrityError: The papers hold none.
    """
    raw = store.read(key(digest, "golden.jsonl"))
    try:
        return digests.canonical(json.loads((raw or b"").splitlines()[0])["request"])
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"the papers of bundle {digest} hold no golden request that can be sent") from error
