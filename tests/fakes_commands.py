"""What commands reach, in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fakes_serving import (
    NAMESPACE,
    FakeClock,
    MemoryRoutes,
    MemoryServices,
    MemoryStore,
    RoutedPredictions,
)

from seatrial import digests, papers, release
from seatrial.app.commands._ports import Local
from seatrial.app.sandbox import Sandbox
from seatrial.ledger import Book
from seatrial.release import Served
from seatrial.route import Router, RouteState

MODEL, NAME = "cart_abandonment", "cart-abandonment"


def world_of(home: Path) -> Local:
    """A sandbox in which nobody serves yet."""
    clock, store, routes = FakeClock(), MemoryStore(), MemoryRoutes()
    book = Book(store, clock)
    unused: Any = None
    return Local(
        sandbox=Sandbox(
            home=home,
            gateway_url="",
            gateway_metrics_url="",
            control_url="",
            store_url="",
            tracking_url="",
            kubeconfig=home,
            namespace=NAMESPACE,
            environment={"seatrial-source": {"SEATRIAL_SOURCE": str(home)}},
        ),
        namespace=NAMESPACE,
        store=store,
        services=MemoryServices(),
        router=Router(routes, clock, namespace=NAMESPACE, book=book),
        predictions=RoutedPredictions(routes, {}),
        traffic=unused,
        clock=clock,
        book=book,
    )


def serve(world: Any, champion: int, *, previous: int | None = None, with_services: bool = True) -> None:
    """Make `champion` serve, as a release would have left it: papers, service, route, ledger."""
    for version in filter(None, (champion, previous)):
        bundle = digests.of_json(version)
        image = f"localhost/seatrial/{NAME}@{digests.of_json([version])}"
        served = Served(version=version, bundle=bundle, image=image, release_digest=bundle)
        world.store.write(release.served_key(MODEL, version), served.model_dump_json().encode())
        world.store.write(papers.key(bundle, "golden.jsonl"), json.dumps({"request": {"id": "a"}}).encode())
        if with_services:
            world.services.put(MODEL, version)
    state = RouteState(
        model_name=MODEL, exists=True, champion=champion, previous=previous, weights={champion: 100}, owner="r1"
    )
    world.router.change(MODEL, lambda _: state, action="promote", reason="passed")


def lose_route(world: Any) -> None:
    """Somebody deletes the HTTPRoute."""
    world.router._routes.objects.clear()


def reserve(world: Any, versions: Iterable[tuple[int, str]]) -> None:
    """Versions and the releases that have them."""
    for version, release_id in versions:
        world.store.write(release.reservation_key(MODEL, version), json.dumps({"release_id": release_id}).encode())
