"""resolve_release: what is to be released, and is there anything to release at all?"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes_release as made
import pytest
import yaml
from fakes_serving import NAMESPACE, FakeClock, FolderSources, MemoryRoutes, MemoryStore

from seatrial import digests, release
from seatrial.adapters import trees
from seatrial.errors import Frozen, IntegrityError, InvalidInput
from seatrial.release import Release, Served
from seatrial.route import Router, RouteState
from seatrial.spec import Resources
from steps.resolve_release.__main__ import Ports, run
from steps.resolve_release.contract import Inputs, Outputs
from steps.resolve_release.logic import pod_spec_patch, reserve

MODEL, NAME = "tea_orders", "tea-orders"
IMAGES = digests.of_bytes(b"images")
DATA = b"order,price\n1,2\n"


class World:
    """A source with one model, its data, a store and a route."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.store, self.bucket, self.routes = MemoryStore(), MemoryStore(), MemoryRoutes()
        self.bucket.objects["orders.csv"] = DATA
        self.sources = FolderSources({MODEL: {"model.yaml": yaml.safe_dump(made.spec_data())}, "other": {}})
        self.ports = Ports(
            store=self.store,
            open_bucket=lambda bucket: {"data": self.bucket, "seatrial": self.store}[bucket],
            sources=self.sources,
            router=Router(self.routes, FakeClock(), namespace=NAMESPACE),
            images_digest=IMAGES,
        )
        self.runs = 0

    def resolve(self, **changes: str) -> Outputs:
        asked = {
            "model_name": MODEL,
            "revision": "",
            "data_uri": "s3://data/orders.csv",
            "reason": "a test",
            "release_id": "uid-1",
            **changes,
        }
        self.runs += 1
        scratch = self.tmp_path / f"scratch{self.runs}"
        scratch.mkdir()
        return run(Inputs(**asked), scratch, self.ports)

    def serve(self, version: int, release_digest: str) -> Served:
        """Put a champion into the store and the route."""
        root = self.tmp_path / f"champion{version}"
        case = made.case(root, champion=made.Champion(made.onnx_model(), version))
        assert case.release.champion is not None
        served = case.release.champion.model_copy(update={"release_digest": release_digest})
        trees.put_bundle(self.store, root / "champion" / "bundle")
        self.store.objects[release.served_key(MODEL, version)] = digests.canonical(served.model_dump())
        state = RouteState(model_name=MODEL, exists=True, champion=version, weights={version: 100})
        self.routes.create(state.manifest(NAMESPACE))
        return served


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def found(outputs: Outputs) -> Release:
    return release.read(outputs.release)


def test_a_first_release_gets_version_one_and_no_champion(world: World) -> None:
    outputs = world.resolve()
    assert (outputs.outcome, outputs.version) == ("new", 1)
    assert found(outputs).champion is None
    assert list(outputs.champion.iterdir()) == []
    assert outputs.data.read_bytes() == DATA
    assert (outputs.source / "model.yaml").is_file()


def test_the_release_is_kept_in_the_store(world: World) -> None:
    outputs = world.resolve()
    assert world.store.objects["models/tea_orders/releases/uid-1.json"] == outputs.release.read_bytes()
    assert world.store.json("models/tea_orders/versions/00000001.json")["release_id"] == "uid-1"


def test_a_retry_keeps_its_version_and_another_release_gets_the_next(world: World) -> None:
    assert [world.resolve(release_id=i).version for i in ("a", "b", "a", "b", "c")] == [1, 2, 1, 2, 3]


def test_a_retry_after_a_crash_between_reservation_and_release_keeps_its_version(world: World) -> None:
    world.resolve(release_id="a")
    del world.store.objects["models/tea_orders/releases/a.json"]
    assert world.resolve(release_id="a").version == 1


def test_many_at_once_get_different_versions(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda i: reserve(world.store, MODEL, f"r{i}", above=0), range(24)))
    assert sorted(versions) == list(range(1, 25))


def test_a_version_is_above_the_champions_whatever_the_store_says(world: World) -> None:
    world.serve(7, digests.of_json(0))
    assert world.resolve().version == 8


def test_the_champion_comes_with_its_bundle(world: World) -> None:
    served = world.serve(1, digests.of_json(0))
    outputs = world.resolve()
    assert found(outputs).champion == served
    assert (outputs.champion / "bundle" / "model" / "model.onnx").is_file()


def test_the_champions_release_digest_means_unchanged_and_reserves_nothing(world: World) -> None:
    digest = found(world.resolve()).release_digest
    world.serve(1, digest)
    before = dict(world.store.objects)
    outputs = world.resolve(release_id="uid-2", reason="again")
    assert (outputs.outcome, outputs.version) == ("unchanged", 1)
    assert world.store.objects == before
    assert found(outputs).version == 1
    assert outputs.data.read_bytes() == DATA


def test_after_a_rollback_the_version_that_was_left_is_released_anew(world: World) -> None:
    """Unchanged is against who serves, not against who once served: v2's source again is a version of its own."""
    first = world.resolve(release_id="uid-1")
    world.sources.folders[MODEL]["train.py"] = "pass"
    second = world.resolve(release_id="uid-2")
    assert (first.version, second.version) == (1, 2)
    for outputs in (first, second):
        served = world.serve(outputs.version, found(outputs).release_digest)
        del world.routes.objects[NAME]
    state = RouteState(model_name=MODEL, exists=True, champion=1, weights={1: 100}, owner="ann")
    world.routes.create(state.manifest(NAMESPACE))
    again = world.resolve(release_id="uid-5")
    assert (again.outcome, again.version, served.version) == ("new", 3, 2)
    assert found(again).release_digest == found(second).release_digest
    champion = found(again).champion
    assert champion is not None
    assert champion.version == 1


def test_a_retry_that_finds_another_champion_keeps_its_version_and_names_the_new_one(world: World) -> None:
    world.serve(1, digests.of_json(0))
    assert world.resolve(release_id="a").version == 2
    del world.routes.objects[NAME]
    world.serve(4, digests.of_json(1))
    outputs = world.resolve(release_id="a")
    assert (outputs.version, release.served_key(MODEL, 4) in world.store.objects) == (2, True)
    champion = found(outputs).champion
    assert champion is not None
    assert champion.version == 4


@pytest.mark.parametrize("what", ["source", "spec", "data", "images"])
def test_whatever_makes_a_difference_makes_a_release(world: World, what: str) -> None:
    world.serve(1, found(world.resolve()).release_digest)
    if what == "source":
        world.sources.folders[MODEL]["train.py"] = "pass"
    elif what == "spec":
        world.sources.folders[MODEL]["model.yaml"] = yaml.safe_dump(made.spec_data(alpha=0.01))
    elif what == "data":
        world.bucket.objects["orders.csv"] = DATA + b"2,3\n"
    else:
        world.ports = replace(world.ports, images_digest=digests.of_bytes(b"newer"))
    outputs = world.resolve(release_id="uid-2")
    assert (outputs.outcome, outputs.version) == ("new", 2)


def test_each_release_counts_one_look_at_the_held_out_rows(world: World) -> None:
    for release_id in ("a", "a", "b"):
        world.resolve(release_id=release_id)
    looks = release.looks(MODEL, digests.of_bytes(DATA))
    assert world.store.keys(looks) == [f"{looks}a.json", f"{looks}b.json"]


@pytest.mark.parametrize("name", ["../x", "A b", "$(id)", "{{x}}", "t" * 31, "cocoa"])
def test_a_wrong_model_name_is_refused_and_the_known_ones_are_named(world: World, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"known models: \['other', 'tea_orders'\]"):
        world.resolve(model_name=name)
    assert world.store.objects == {}


def test_a_wrong_spec_is_refused_before_anything_is_reserved(world: World) -> None:
    world.sources.folders[MODEL]["model.yaml"] += "\ncolour: green\n"
    with pytest.raises(InvalidInput, match="colour"):
        world.resolve()
    assert world.store.objects == {}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("s3://data/nothing.csv", "no such object"),
        ("s3://data/empty.csv", "is empty"),
        ("s3://data", "DATA_URI is"),
        ("s3:///orders.csv", "DATA_URI is"),
        ("file:///nowhere/orders.csv", "must be a file at"),
        ("file:///", "must be a file at"),
        ("file://host/orders.csv", "DATA_URI is"),
        ("orders.csv", "DATA_URI is"),
        ("https://x/orders.csv", "DATA_URI is"),
        ("", "DATA_URI is"),
    ],
)
def test_data_that_is_not_there_is_wrong_input(world: World, uri: str, message: str) -> None:
    world.bucket.objects["empty.csv"] = b""
    with pytest.raises(InvalidInput, match=message):
        world.resolve(data_uri=uri)
    assert world.store.objects == {}


def test_data_may_be_a_file_here(world: World, tmp_path: Path) -> None:
    path = tmp_path / "our orders.csv"
    path.write_bytes(DATA)
    assert world.resolve(data_uri=path.as_uri()).data.read_bytes() == DATA


def test_a_release_id_never_becomes_another_path(world: World) -> None:
    with pytest.raises(InvalidInput, match="release id"):
        world.resolve(release_id="../../served/00000001")


def test_a_route_changed_by_hand_stops_the_release_before_it_starts(world: World) -> None:
    world.serve(1, digests.of_json(0))
    world.routes.by_hand(NAME, {"tea-orders-v9-predictor": 1})
    with pytest.raises(Frozen, match="seatrial adopt tea_orders"):
        world.resolve()


def test_a_champion_that_the_store_does_not_know_is_an_integrity_error(world: World) -> None:
    world.serve(1, digests.of_json(0))
    del world.store.objects[release.served_key(MODEL, 1)]
    with pytest.raises(IntegrityError, match="v1 serves tea_orders"):
        world.resolve()


def test_an_altered_champion_bundle_is_an_integrity_error(world: World) -> None:
    world.serve(1, digests.of_json(0))
    key = next(key for key in world.store.objects if key.endswith("model.onnx"))
    world.store.objects[key] += b"!"
    with pytest.raises(IntegrityError, match=r"model\.onnx"):
        world.resolve()


def test_the_training_pod_gets_what_the_spec_asks_for() -> None:
    patch = pod_spec_patch(Resources(cpu="4", memory="8Gi", gpus=1, node_selector={"gpu": "a10"}))
    amounts = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}
    assert patch == {
        "containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}],
        "nodeSelector": {"gpu": "a10"},
    }


def test_without_gpus_and_nodes_the_patch_names_neither(world: World) -> None:
    patch: dict[str, Any] = json.loads(world.resolve().pod_spec_patch)
    amounts = {"cpu": "1", "memory": "1Gi"}
    assert patch == {"containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]}
