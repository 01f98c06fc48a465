"""What the commands reach in the sandbox, with the adapters that the steps use."""

from __future__ import annotations

import getpass
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial import bundle, digests, release
from seatrial.adapters import clock, gateway, kubernetes, s3
from seatrial.app.commands._place import known_models
from seatrial.app.sandbox import Sandbox
from seatrial.errors import IntegrityError
from seatrial.ledger import Book
from seatrial.ports import Clock, Predictions, Services, Store, TrafficCounts
from seatrial.release import Served
from seatrial.route import Router


@dataclass(frozen=True, kw_only=True)
class Ports:
    """A running sandbox, reached."""

    sandbox: Sandbox
    store: Store
    services: Services
    router: Router
    predictions: Predictions
    traffic: TrafficCounts
    clock: Clock
    book: Book

    @property
    def models(self) -> list[str]:
        """The models of the sandbox's source, sorted."""
        return known_models(Path(self.sandbox.environment["seatrial-source"]["SEATRIAL_SOURCE"]))

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.sandbox.home / "runs"

    @property
    def locks(self) -> Path:
        """The folder of the runner's locks."""
        return self.sandbox.home / "locks"

    def served(self, model: str, version: int) -> Served:
        """What the store knows of a version that serves or served.

        Raises:
            IntegrityError: It knows nothing.
        """
        raw = self.store.read(release.served_key(model, version))
        if raw is None:
            raise IntegrityError(f"v{version} of {model} is in the route, and the store does not know it")
        return Served.model_validate_json(raw)

    def paper(self, model: str, version: int, name: str) -> bytes:
        """One of a version's papers.

        Raises:
            IntegrityError: It is not there.
        """
        key = f"{bundle.papers_prefix(self.served(model, version).bundle)}/{name}"
        raw = self.store.read(key)
        if raw is None:
            raise IntegrityError(f"v{version} of {model} must have the paper {key}; the store has none")
        return raw

    def golden_request(self, model: str, version: int) -> bytes:
        """The body of a request that the version is known to answer.

        Raises:
            IntegrityError: Its papers hold none.
        """
        lines = self.paper(model, version, "golden.jsonl").splitlines()
        if not lines:
            raise IntegrityError(f"the papers of v{version} of {model} hold no golden request")
        return digests.canonical(json.loads(lines[0])["request"])

    def outcomes(self, model: str) -> list[dict[str, Any]]:
        """How the releases of a model ended, by version."""
        keys = self.store.keys(f"models/{model}/outcomes/")
        found = [json.loads(self.store.read(key) or b"{}") for key in keys]
        return sorted(found, key=lambda facts: (facts.get("version") or 0, str(facts.get("release_id"))))


def person() -> str:
    """Who gives the command, for the route and the ledger."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name; Python 3.13 raises OSError
        return f"uid {os.getuid()}"


def connect(sandbox: Sandbox) -> Ports:
    """The adapters for a sandbox that is up."""
    values = {name: value for source in sandbox.environment.values() for name, value in source.items()}
    cluster = kubernetes.connect(sandbox.namespace, str(sandbox.kubeconfig))
    front, time, store = gateway.from_environment(values), clock.from_environment(), s3.from_environment(values)
    book = Book(store, time)
    return Ports(
        sandbox=sandbox,
        store=store,
        services=cluster.services,
        router=Router(cluster.routes, time, namespace=sandbox.namespace, book=book, say=_warn),
        predictions=front.predictions,
        traffic=front.traffic,
        clock=time,
        book=book,
    )


def _warn(what: str, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    if what == "ledger_not_written":
        sys.stderr.write(f"warning: the route was changed and the ledger could not be written: {facts.get('error')}\n")
