"""A bundle's papers, believed: trusted keys signed the verdicts, and package_model's names the digest of all the rest.

deploy_model and run_canary ask here, each before it does anything: what they act on is what the gates judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import ValidationError

from seatrial import digests, papers, verdict
from seatrial.errors import IntegrityError, shortened
from seatrial.ports import Store
from seatrial.release import Release
from seatrial.spec import Closed, Spec
from seatrial.triton import requests
from seatrial.triton.requests import Example
from seatrial.verdict import BEFORE_DEPLOY, Gate, Verdict
from steps import _required

Kind = TypeVar("Kind", bound=Closed)


@dataclass(frozen=True, kw_only=True)
class Papers:
    """What a roll-out acts on."""

    verdicts: Mapping[Gate, Verdict]
    spec: Spec
    release: Release
    """The one whose gates judged the bundle; a roll-out that is submitted alone has another id."""
    golden: tuple[Example, ...]
    """At least one."""
    replay: tuple[Example, ...]


def believed(
    store: Store, trusted: Iterable[Ed25519PublicKey], *, bundle: str, model_name: str, version: int
) -> Papers:
    """The papers of a bundle that may be served as this version of this model.

    Raises:
        IntegrityError: A paper is missing, altered or cannot be read; a verdict is foreign, no pass, about something
            else, or was asked for less than the spec lists.
    """
    envelopes = {gate: store.read(papers.key(bundle, f"{gate}.dsse.json")) for gate in BEFORE_DEPLOY}
    found = verdict.require_all(envelopes, trusted, bundle=bundle, model_name=model_name)
    judged = found["package_model"].judged
    spec = _parsed(Spec, _judged(store, bundle, "spec.json", judged))
    release = _parsed(Release, _judged(store, bundle, "release.json", judged))
    _hang_together(found, spec, release, version)
    golden = _examples(_judged(store, bundle, "golden.jsonl", judged))
    if not golden:
        raise IntegrityError(f"golden.jsonl of bundle {bundle} holds no request: nothing would be tried")
    replay = _examples(_judged(store, bundle, "replay.jsonl", judged))
    return Papers(verdicts=found, spec=spec, release=release, golden=golden, replay=replay)


def _judged(store: Store, bundle: str, name: str, judged: Mapping[str, str]) -> bytes:
    """A paper, which must be the very bytes that package_model judged."""
    raw = store.read(papers.key(bundle, name))
    if raw is None:
        raise IntegrityError(f"the papers of bundle {bundle} lack {name}: package it again")
    if digests.of_bytes(raw) != judged.get(name):
        raise IntegrityError(
            f"{name} of bundle {bundle} was altered: package_model judged {judged.get(name)}, "
            f"the store holds {digests.of_bytes(raw)}"
        )
    return raw


def _hang_together(found: Mapping[Gate, Verdict], spec: Spec, release: Release, version: int) -> None:
    """One release, version and policy; the champion that was compared with; and no check left out."""
    package = found["package_model"]
    if package.version != version:
        raise IntegrityError(f"the gates judged v{package.version}; v{version} is to be rolled out")
    came = (package.model_name, package.release_id, package.version, package.policy)
    wanted = (release.model_name, release.release_id, release.version, spec.policy_digest)
    if came != wanted or spec.model != release.model_name:
        raise IntegrityError(f"the verdicts are of {came}; release.json and spec.json are of {wanted}")
    champion = None if release.champion is None else release.champion.bundle
    compared = found["evaluate_model"].judged.get("champion")
    if compared != champion:
        raise IntegrityError(f"evaluate_model compared with {compared}; the release was resolved against {champion}")
    _required.check(found.values(), spec, champion=champion is not None)


def _examples(text: bytes) -> tuple[Example, ...]:
    return tuple(requests.parse(text))


def _parsed(kind: type[Kind], raw: bytes) -> Kind:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise IntegrityError(f"the papers hold no readable {kind.__name__.lower()}: {shortened(error)}") from error
