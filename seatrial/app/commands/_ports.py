"""What the commands reach of a seatrial that runs, with the adapters that the steps use."""

from __future__ import annotations

import getpass
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial import papers, release
from seatrial.adapters import clock, gateway, kubernetes, s3
from seatrial.app.sandbox import Sandbox
from seatrial.errors import IntegrityError
from seatrial.ledger import Book
from seatrial.ports import Clock, Predictions, Services, Store, TrafficCounts
from seatrial.route import Router


@dataclass(frozen=True, kw_only=True)
class Ports:
    """A seatrial that runs, reached: on this machine or on a cluster."""

    namespace: str
    """Of services and routes."""
    store: Store
    services: Services
    router: Router
    predictions: Predictions
    traffic: TrafficCounts
    clock: Clock
    book: Book
    options: str = ""
    """What a command needs to be about this place: ` --context staging`."""
    releasing: str = "release"
    """The command that releases here."""

    def paper(self, model: str, version: int, name: str) -> bytes:
        """One of a version's papers.

        Raises:
            IntegrityError: It is not there.
        """
        key = papers.key(release.serving(self.store, model, version).bundle, name)
        raw = self.store.read(key)
        if raw is None:
            raise IntegrityError(f"v{version} of {model} must have the paper {key}; the store has none")
        return raw

    def golden_request(self, model: str, version: int) -> bytes:
        """The body of a request that the version is known to answer.

        Raises:
            IntegrityError: The store does not know the version, or its papers hold none.
        """
        return papers.golden_request(self.store, release.serving(self.store, model, version).bundle)

    def releases(self, model: str) -> list[dict[str, Any]]:
        """How the releases of a model ended, the latest last."""
        keys = self.store.keys(f"models/{model}/outcomes/")
        return in_order(json.loads(self.store.read(key) or b"{}") for key in keys)


@dataclass(frozen=True, kw_only=True)
class Local(Ports):
    """The sandbox, reached."""

    sandbox: Sandbox

    @property
    def source(self) -> Path:
        """Where its models come from."""
        return Path(self.sandbox.environment["seatrial-source"]["SEATRIAL_SOURCE"])

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.sandbox.home / "runs"

    @property
    def locks(self) -> Path:
        """The folder of the runner's locks."""
        return self.sandbox.home / "locks"


def in_order(outcomes: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - an iterable of JSON objects
    """Outcomes by the moment of their end, and by version where that is not known."""
    return sorted(outcomes, key=lambda facts: (str(facts.get("at") or ""), facts.get("version") or 0))


def person() -> str:
    """Who gives the command, for the route and the ledger."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name; Python 3.13 raises OSError
        return f"uid {os.getuid()}"


def connect(sandbox: Sandbox) -> Local:
    """The adapters for a sandbox that is up."""
    values = {name: value for source in sandbox.environment.values() for name, value in source.items()}
    cluster = kubernetes.connect(sandbox.namespace, str(sandbox.kubeconfig))
    front, time, store = gateway.from_environment(values), clock.from_environment(), s3.from_environment(values)
    book = Book(store, time)
    return Local(
        sandbox=sandbox,
        namespace=sandbox.namespace,
        store=store,
        services=cluster.services,
        router=Router(cluster.routes, time, namespace=sandbox.namespace, book=book, say=warn),
        predictions=front.predictions,
        traffic=front.traffic,
        clock=time,
        book=book,
    )


def warn(what: str, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """Tell on stderr what a change of a route could not do."""
    if what == "ledger_not_written":
        sys.stderr.write(f"warning: the route was changed and the ledger could not be written: {facts.get('error')}\n")
