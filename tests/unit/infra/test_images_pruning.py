from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from infra.images import built, pruning
from infra.images.built import Built
from infra.images.place import Cache


def one(key: str) -> Built:
    name = f"seatrial/{key.rpartition('-')[0]}"
    sizes = {"bytes": 1, "unpacked_bytes": 1}
    return Built(name=name, key=key, digest="sha256:0", user="1", entrypoint=("x",), **sizes)


def lay(cache: Cache, key: str, *layers: str) -> None:
    """A layout whose manifest and config have names of their own and whose layers may be shared."""
    blobs = cache.blobs / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    manifest = {
        "config": {"digest": f"sha256:config-{key}"},
        "layers": [{"digest": f"sha256:{layer}"} for layer in layers],
    }
    (blobs / f"manifest-{key}").write_text(json.dumps(manifest))
    for name in (f"config-{key}", *layers):
        (blobs / name).touch()
    cache.layout(key).mkdir(parents=True)
    index = {"manifests": [{"digest": f"sha256:manifest-{key}"}]}
    (cache.layout(key) / "index.json").write_text(json.dumps(index))
    built.write(one(key), cache)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """Two images that share a layer, ten bytes of layers, and a buildah that writes down what it is asked."""
    cache = Cache(tmp_path / "cache")
    lay(cache, "a-111111111111", "shared", "of-a")
    lay(cache, "b-222222222222", "shared", "of-b")
    place = cache.storage / "overlay-layers"
    place.mkdir(parents=True)
    (place / "layers.json").write_text(json.dumps([{"diff-size": 4}, {"diff-size": 6}, {"id": "empty"}]))
    program = tmp_path / "bin" / "buildah"
    program.parent.mkdir()
    names = "localhost/seatrial/a:111111111111\\nlocalhost/seatrial/b:222222222222\\n<none>:<none>"
    program.write_text(f"#!/bin/sh\nshift 3\necho \"$@\" >> {tmp_path}/calls\nprintf '{names}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return cache


def test_what_this_tree_does_not_need_goes(cache: Cache, tmp_path: Path) -> None:
    assert pruning.prune({"seatrial/a": one("a-111111111111")}, cache, most_bytes=9)
    assert built.find("a-111111111111", cache) is not None
    assert built.find("b-222222222222", cache) is None
    assert sorted(path.name for path in (cache.blobs / "sha256").iterdir()) == [
        "config-a-111111111111",
        "manifest-a-111111111111",
        "of-a",
        "shared",
    ]
    removed = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("rmi")]
    assert removed == ["rmi --force localhost/seatrial/b:222222222222", "rmi --prune"]


def test_up_to_the_bound_all_stays(cache: Cache) -> None:
    assert not pruning.prune({}, cache, most_bytes=10)
    assert built.find("b-222222222222", cache) is not None


def test_nothing_goes_while_somebody_builds(cache: Cache) -> None:
    with cache.shared("storage"):
        assert not pruning.prune({}, cache, most_bytes=0)
    assert built.find("b-222222222222", cache) is not None


def test_builds_go_side_by_side(cache: Cache) -> None:
    with cache.shared("storage"), cache.shared("storage"), cache.alone("storage") as alone:
        assert not alone


def test_a_cache_without_layers_holds_nothing(tmp_path: Path) -> None:
    assert pruning.layer_bytes(Cache(tmp_path)) == 0
