"""resolve_release: what is to be released, and is there anything to release at all?"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from seatrial import digests, release, spec
from seatrial.adapters import trees
from seatrial.errors import Frozen, InvalidInput, shortened
from seatrial.names import model_name
from seatrial.ports import Sources, Store
from seatrial.release import Release, Served
from seatrial.route import Router
from seatrial.spec import Spec
from steps import _runtime
from steps.resolve_release.contract import STEP, Inputs, Outputs
from steps.resolve_release.fetch import OpenBucket, fetch
from steps.resolve_release.logic import pod_spec_patch, release_digest, reserve

_RELEASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What resolving needs from outside."""

    store: Store
    open_bucket: OpenBucket
    sources: Sources
    router: Router
    images_digest: str


def run(inputs: Inputs, scratch: Path, ports: Ports) -> Outputs:
    """Source, data, champion and version of the release.

    Raises:
        InvalidInput: An unknown model, a wrong spec, no data, or a route that somebody changed by hand.
        IntegrityError: The champion's papers or its bundle are not what they were.
    """
    source, revision = _export(inputs, scratch, ports.sources)
    read = spec.read(source)
    data = fetch(inputs.data_uri, scratch / "data", ports.open_bucket)
    champion = _champion(inputs.model_name, ports)
    _fetch_champion(ports.store, champion, scratch / "champion")
    found = Release(
        release_id=inputs.release_id,
        model_name=inputs.model_name,
        version=champion.version if champion else 1,  # until one is reserved
        revision=revision,
        reason=inputs.reason,
        data_uri=inputs.data_uri,
        champion=champion,
        **_digests(source, read, data, ports.images_digest),
    )
    unchanged = champion is not None and champion.release_digest == found.release_digest
    if not unchanged:
        found = _reserved(found, ports.store)
    (scratch / "release.json").write_bytes(digests.canonical(found.model_dump(mode="json")))
    return Outputs(
        outcome="unchanged" if unchanged else "new",
        version=found.version,
        pod_spec_patch=json.dumps(pod_spec_patch(read.training.resources), sort_keys=True),
        release=scratch / "release.json",
        source=source,
        data=data,
        champion=scratch / "champion",
    )


def _export(inputs: Inputs, scratch: Path, sources: Sources) -> tuple[Path, str]:
    """The model's folder, which bears its name, and the revision that it is."""
    if not _RELEASE_ID.fullmatch(inputs.release_id):
        raise InvalidInput(
            f"a release id is letters, digits, '.', '_' and '-'; got {shortened(repr(inputs.release_id))}"
        )
    known = sources.models(inputs.revision)
    try:
        model_name(inputs.model_name)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; known models: {known}") from error
    if inputs.model_name not in known:
        raise InvalidInput(f"MODEL_NAME {inputs.model_name!r} is no model of the source; known models: {known}")
    folder = scratch / "tree" / inputs.model_name
    revision = sources.export(inputs.model_name, inputs.revision, folder)
    _runtime.event("exported", revision=revision)
    return folder, revision


def _digests(source: Path, read: Spec, data: Path, images: str) -> dict[str, str]:
    parts = {"source": digests.of_tree(source), "spec": read.digest, "data": digests.of_file(data), "images": images}
    return {
        **{f"{name}_digest": digest for name, digest in parts.items()},
        "release_digest": release_digest(**parts),
    }


def _champion(model: str, ports: Ports) -> Served | None:
    """The version that the route says serves, with what the store knows of it."""
    state = ports.router.read(model)
    if state.foreign:
        raise Frozen(
            f"somebody changed the route of {model} by hand: nothing is released until a person has said "
            f"`seatrial adopt {model}`, or `seatrial rollback {model}`"
        )
    if state.champion is None:
        return None
    return release.serving(ports.store, model, state.champion)


def _fetch_champion(store: Store, champion: Served | None, into: Path) -> None:
    into.mkdir()
    if champion is not None:
        trees.fetch_bundle(store, champion.bundle, into / "bundle")


def _reserved(found: Release, store: Store) -> Release:
    """The release with a version of its own, kept in the store; its look at the held-out rows is counted."""
    above = found.champion.version if found.champion else 0
    version = reserve(store, found.model_name, found.release_id, above=above)
    mine = found.model_copy(update={"version": version})
    looks = release.looks(mine.model_name, mine.data_digest)
    store.write_once(f"{looks}{mine.release_id}.json", digests.canonical({"version": version}))
    store.write(release.key(mine.model_name, mine.release_id), digests.canonical(mine.model_dump(mode="json")))
    _runtime.event("reserved", version=version, looks_at_holdout=len(store.keys(looks)))
    return mine


if __name__ == "__main__":
    from seatrial.adapters import clock, git, kubernetes, s3

    def _ports() -> Ports:
        cluster = kubernetes.from_environment()
        return Ports(
            store=s3.from_environment(),
            open_bucket=lambda bucket: s3.S3Store(s3.client(), bucket),
            sources=git.from_environment(),
            router=Router(cluster.routes, clock.from_environment(), namespace=cluster.namespace),
            images_digest=git.step_images(),
        )

    _runtime.main("resolve_release", STEP, Inputs, lambda i, s: run(i, s, _ports()))
