"""What is to be deployed, after it has been believed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import ValidationError

from seatrial import bundle, release
from seatrial.bundle import Bundle
from seatrial.errors import IntegrityError, shortened
from seatrial.names import model_name
from seatrial.ports import Images, Store
from seatrial.release import Release, Served
from seatrial.spec import Spec
from seatrial.triton.requests import Example
from seatrial.verdict import Verdict
from steps import _papers
from steps.deploy_model.contract import Inputs
from steps.deploy_model.service import inference_service


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What is to be deployed, believed."""

    inputs: Inputs
    spec: Spec
    evaluated: Verdict
    golden: tuple[Example, ...]
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
    digest, version = inputs.bundle_digest, inputs.version
    known = _papers.believed(
        store, trusted, bundle=digest, model_name=model_name(inputs.model_name), version=inputs.version
    )
    _is_in_the_store(store, digest, known.verdicts["package_model"].judged["model"])
    _is_its_own(inputs, known.release, store)
    return Candidate(
        inputs=inputs,
        spec=known.spec,
        evaluated=known.verdicts["evaluate_model"],
        golden=known.golden,
        served=Served(version=version, bundle=digest, image=inputs.image, release_digest=known.release.release_digest),
        service=inference_service(
            known.spec,
            version=version,
            image=inputs.image,
            bundle=digest,
            namespace=namespace,
            replicas=max(known.spec.serving.replicas, replicas_min),
        ),
    )


def _is_in_the_store(store: Store, digest: str, model: str) -> None:
    """The bundle is there, by its manifest, with the model that was judged."""
    raw = store.read(f"{bundle.prefix(digest)}/{bundle.MANIFEST}")
    try:
        found = Bundle.model_validate_json(raw or b"")
    except ValidationError as error:
        raise IntegrityError(f"the store holds no readable bundle {digest}: {shortened(error)}") from error
    if found.digest != digest:
        raise IntegrityError(f"the store holds {found.digest} in the place of bundle {digest}")
    if found.model_digest != model:
        raise IntegrityError(f"the model in bundle {digest} is not the one that was judged")


def is_in_the_image(images: Images, image: str, bundle_digest: str) -> bool:
    """Whether the image's own label names the bundle; False: whoever keeps the image does not let it be read here.

    Raises:
        IntegrityError: The label names another bundle, or there is none.
        InvalidInput: There is no such image.
    """
    labels = images.labels(image)
    if labels is None:
        return False
    named = labels.get(bundle.IMAGE_LABEL)
    if named != bundle_digest:
        says = f"says that it holds bundle {shortened(named)}" if named else f"has no label {bundle.IMAGE_LABEL}"
        raise IntegrityError(f"the image {image} {says}; bundle {bundle_digest} is to be rolled out")
    return True


def _is_its_own(inputs: Inputs, judged: Release, store: Store) -> None:
    """A release deploys what its own gates judged; a roll-out that is submitted alone is none, and has no record."""
    if inputs.release_id != judged.release_id and store.read(release.key(inputs.model_name, inputs.release_id)):
        raise IntegrityError(
            f"the verdicts are of release {judged.release_id}; release {inputs.release_id} has to bring its own"
        )
