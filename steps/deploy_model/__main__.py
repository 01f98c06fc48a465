"""deploy_model: the version runs behind the gateway, at weight 0, and answers right.

    1  the bundle's papers are believed: signed verdicts that passed, about this bundle, this version and the rest;
       the image's label names this bundle, where the image can be read
    2  the champion is the one that it was judged against: else superseded
    3  the store knows what the version is; its InferenceService is made, and truly ready in time
    4  the route reaches it by header only; golden requests come back right; the champion still has all traffic

Each part finds what an earlier attempt left and goes on from there. A candidate that does not get through is taken out
of the route, and its service is deleted. The version that serves already is made whole where something of it is
missing, and that is all: there is nothing to try.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from seatrial import digests, papers, release, route
from seatrial.errors import Superseded, Unavailable, shortened
from seatrial.ledger import Book
from seatrial.ports import Clock, Images, Predictions, Services, Store
from seatrial.route import Router, RouteState
from seatrial.route.state import CANARY_ARM
from seatrial.triton import requests
from steps import _runtime
from steps._contract import Gated
from steps.deploy_model.candidate import Candidate, believe, is_in_the_image
from steps.deploy_model.contract import STEP, Inputs, Outputs
from steps.deploy_model.logic import Readiness, against, readiness

LOOK_S: Final = 1.0
"""Seconds between looks at a service that is not ready."""
FOLLOW_S: Final = 20.0
"""Seconds that the gateway may take to follow the route."""
REPEATS: Final = 3
"""How often each golden request is sent."""
FAULTS_MAX: Final = 5
"""Wrong answers after which it is enough."""
WATCH_S: Final = 900.0
"""Seconds until run_canary must have taken over the watch; afterwards anybody's settle takes the candidate out."""

Outcome = Literal["deployed", "unchanged", "not_ready", "wrong_answers", "superseded"]
DECISIONS: Final[dict[Outcome, Gated]] = {
    "deployed": "pass",
    "unchanged": "none",
    "not_ready": "fail",
    "wrong_answers": "fail",
    "superseded": "inconclusive",
}


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What deploying needs from outside."""

    store: Store
    images: Images
    services: Services
    router: Router
    predictions: Predictions
    clock: Clock
    trusted_keys: tuple[Ed25519PublicKey, ...]
    namespace: str
    replicas_min: int


@dataclass
class Record:
    """What was waited for and what was seen."""

    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can say
        """Note it, and say it."""
        self.facts[what] = facts
        _runtime.event(what, **facts)


def run(inputs: Inputs, scratch: Path, ports: Ports) -> Outputs:
    """Deploy the candidate, or say why not.

    Raises:
        IntegrityError: A verdict or another paper is missing, altered or foreign, or the image holds another bundle.
        InvalidInput: The image is not named by digest or not there, or somebody changed the route by hand.
        Unavailable: Store, registry, API or gateway do not answer.
    """
    candidate = believe(
        inputs, ports.store, ports.trusted_keys, namespace=ports.namespace, replicas_min=ports.replicas_min
    )
    record = Record({"service": candidate.name, "version": inputs.version, "image": inputs.image})
    compared = is_in_the_image(ports.images, inputs.image, inputs.bundle_digest)
    record.add("image_label", compared=compared)
    try:
        outcome, reason = _deployed(candidate, ports, record)
    except Superseded as error:
        outcome, reason = "superseded", str(error)
    if outcome not in {"deployed", "unchanged"}:
        _take_out(candidate, ports, record, outcome)
    record.facts |= {"outcome": outcome, "reason": reason}
    (scratch / "record.json").write_bytes(digests.canonical(record.facts))
    return Outputs(
        decision=DECISIONS[outcome],
        outcome=outcome,
        reason=shortened(reason),
        service=candidate.name,
        record=scratch / "record.json",
    )


def _deployed(candidate: Candidate, ports: Ports, record: Record) -> tuple[Outcome, str]:
    """What came of it, and why it is not deployed."""
    _begin(candidate, ports.router.read(candidate.spec.model), ports)  # superseded or frozen: before any effect
    key = release.served_key(candidate.spec.model, candidate.served.version)
    ports.store.write(key, digests.canonical(candidate.served.model_dump(mode="json")))
    ports.services.create(candidate.service)
    found = _wait(candidate, ports, record)
    if found.state != "ready":
        return "not_ready", found.reason
    state = ports.router.change(
        candidate.spec.model,
        lambda s: _begin(candidate, s, ports),
        action="begin",
        reason=candidate.inputs.reason,
    )
    faults = _faults(candidate, state, ports)
    record.add("golden", requests=len(candidate.golden), repeats=REPEATS, faults=faults)
    if faults:
        return "wrong_answers", faults[0]
    record.add("read_back", answers=_read_back(candidate, state, ports))
    if state.champion == candidate.inputs.version and state.owner != candidate.inputs.release_id:
        return "unchanged", f"v{candidate.inputs.version} serves already"
    return "deployed", ""


def _begin(candidate: Candidate, state: RouteState, ports: Ports) -> RouteState | None:
    """The decision, over the champion that this very state names."""
    version, now = candidate.inputs.version, ports.clock.now()
    judged_against = state.champion
    if not state.foreign and state.champion != version:
        bundle = release.serving(ports.store, state.model_name, state.champion).bundle if state.champion else None
        judged_against = against(candidate.evaluated, state.champion, bundle)
    return route.begin(
        state,
        version=version,
        owner=candidate.inputs.release_id,
        now=now,
        watched_until=now + timedelta(seconds=WATCH_S),
        against=judged_against,
    )


def _wait(candidate: Candidate, ports: Ports, record: Record) -> Readiness:
    """Look until it is ready, failed or too late."""
    start, limit = ports.clock.now(), candidate.spec.serving.ready_within_s
    while True:
        found = readiness(ports.services.get(candidate.name), replicas=candidate.replicas)
        seconds = (ports.clock.now() - start).total_seconds()
        if found.state != "waiting" or seconds >= limit:
            record.add("waited", state=found.state, reason=found.reason, seconds=round(seconds, 3), limit_s=limit)
            return found
        ports.clock.sleep(min(LOOK_S, limit - seconds))


def _faults(candidate: Candidate, state: RouteState, ports: Ports) -> list[str]:
    """What is wrong with the candidate's answers over the wire; a gateway that is away is nobody's fault."""
    arm = CANARY_ARM if state.candidate == candidate.inputs.version else None
    _follow(candidate, arm, ports)
    faults: list[str] = []
    for example in candidate.golden * REPEATS:
        answer = ports.predictions.ask(candidate.spec.model, requests.body(example), arm=arm)
        if answer.status == 0 and not _gateway_lives(candidate, ports):
            raise Unavailable(f"the gateway does not answer: {answer.error}")
        wrong = example.fault(answer, candidate.inputs.version)
        faults += [f"{example.id}: {wrong}"] if wrong else []
        if len(faults) >= FAULTS_MAX:
            break
    return faults


def _follow(candidate: Candidate, arm: str | None, ports: Ports) -> None:
    """Wait until the gateway leads to the candidate; if it never does, the golden requests will say so."""
    deadline = ports.clock.now() + timedelta(seconds=FOLLOW_S)
    body = requests.body(candidate.golden[0])
    while ports.predictions.ask(candidate.spec.model, body, arm=arm).version != candidate.inputs.version:
        if ports.clock.now() >= deadline:
            return
        ports.clock.sleep(0.1)


def _gateway_lives(candidate: Candidate, ports: Ports) -> bool:
    """Whether requests without the header get any answer; 404 on a first release is one."""
    return ports.predictions.ask(candidate.spec.model, requests.body(candidate.golden[0])).status != 0


def _read_back(candidate: Candidate, state: RouteState, ports: Ports) -> dict[str, int]:
    """Who answers without the header: the champion, asked what it is known to answer; 404 while there is none."""
    model, body = candidate.spec.model, requests.body(candidate.golden[0])
    if state.champion is not None and state.champion != candidate.inputs.version:
        body = papers.golden_request(ports.store, release.serving(ports.store, model, state.champion).bundle)
    expected = [version for version, percent in state.weights.items() if percent > 0]
    return route.read_back(ports.predictions, ports.clock, model, body, expected=expected, within_s=FOLLOW_S)


def _take_out(candidate: Candidate, ports: Ports, record: Record, outcome: Outcome) -> None:
    """Out of the route if it is this release's; then its service goes, if nothing refers to it."""
    model, version, owner = candidate.spec.model, candidate.inputs.version, candidate.inputs.release_id
    state = ports.router.read(model)
    if state.candidate == version and state.owner == owner:
        reason = f"{outcome}: {candidate.inputs.reason}"
        state = ports.router.change(
            model, lambda s: route.settle(s, now=ports.clock.now(), owner=owner), action="go_back", reason=reason
        )
    kept = version in {state.champion, state.previous, state.candidate, *state.weights}
    if not kept:
        ports.services.delete(candidate.name)
    record.add("taken_out", service_deleted=not kept, weights=state.weights)


if __name__ == "__main__":
    from seatrial.adapters import clock, gateway, images, keys, kubernetes, s3

    def _ports() -> Ports:
        cluster, time, store = kubernetes.from_environment(), clock.from_environment(), s3.from_environment()
        return Ports(
            store=store,
            images=images.from_environment(),
            services=cluster.services,
            router=Router(
                cluster.routes, time, namespace=cluster.namespace, book=Book(store, time), say=_runtime.event
            ),
            predictions=gateway.from_environment().predictions,
            clock=time,
            trusted_keys=keys.trusted_keys(),
            namespace=cluster.namespace,
            replicas_min=kubernetes.replicas_min(),
        )

    _runtime.main("deploy_model", STEP, Inputs, lambda i, s: run(i, s, _ports()))
