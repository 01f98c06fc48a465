"""What is to be deployed, after it has been believed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from seatrial.errors import IntegrityError
from seatrial.names import model_name
from seatrial.ports import Store
from seatrial.release import Served
from seatrial.spec import Spec
from seatrial.triton.requests import Example
from seatrial.verdict import Verdict
from steps.deploy_model import papers
from steps.deploy_model.contract import Inputs
from steps.deploy_model.logic import believed
from steps.deploy_model.service import inference_service


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What is to be deployed, believed."""

    inputs: Inputs
    spec: Spec
    evaluated: Verdict
    golden: list[Example]
    served: Served
    service: dict[str, Any]

    @property
    def name(self) -> str:
        """Of its InferenceService."""
        return str(self.service["metadata"]["name"])

    @property
    def replicas(self) -> int:
        """How many copies it must have."""
        return int(self.service["spec"]["predictor"]["minReplicas"])


def believe(
    inputs: Inputs, store: Store, trusted: Iterable[Ed25519PublicKey], *, namespace: str, replicas_min: int
) -> Candidate:
    """The candidate; nothing of it is believed that no trusted key has signed.

    Raises:
        IntegrityError: A verdict or another paper is missing, altered or foreign.
        InvalidInput: The image is not named by digest.
    """
    model_name(inputs.model_name)
    spec = papers.spec_of(store, inputs.bundle_digest)
    if spec.model != inputs.model_name:
        raise IntegrityError(f"bundle {inputs.bundle_digest} is one of {spec.model}, not of {inputs.model_name}")
    envelopes = papers.envelopes(store, inputs.bundle_digest)
    found = believed(envelopes, trusted, bundle=inputs.bundle_digest, spec=spec, version=inputs.version)
    packaged = found["package_model"]
    if packaged.judged["model"] != papers.model_digest(store, inputs.bundle_digest):
        raise IntegrityError(f"the model in bundle {inputs.bundle_digest} is not the one that was judged")
    return Candidate(
        inputs=inputs,
        spec=spec,
        evaluated=found["evaluate_model"],
        golden=papers.golden(store, inputs.bundle_digest),
        served=_served(inputs, packaged.release_id, store),
        service=inference_service(
            spec,
            version=inputs.version,
            image=inputs.image,
            bundle=inputs.bundle_digest,
            namespace=namespace,
            replicas=max(spec.serving.replicas, replicas_min),
        ),
    )


def _served(inputs: Inputs, judged_release: str, store: Store) -> Served:
    """What the store will say of this version, from the release whose verdicts these are.

    A roll-out that is submitted alone has no release of its own; it deploys an earlier one's bundle.
    """
    own = papers.release_of(store, inputs.model_name, inputs.release_id)
    made = own if own is not None else papers.release_of(store, inputs.model_name, judged_release)
    if made is None or made.release_id != judged_release or made.version != inputs.version:
        raise IntegrityError(
            f"the verdicts are of release {judged_release}, v{inputs.version}; the store knows "
            f"{f'release {made.release_id}, v{made.version}' if made else 'no such release'}"
        )
    return Served(
        version=inputs.version, bundle=inputs.bundle_digest, image=inputs.image, release_digest=made.release_digest
    )
