from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.images import build, built, check, inputs
from infra.images.build import Report
from infra.images.built import Built
from infra.images.catalogue import IMAGES, STEPS, Image, named
from infra.images.place import ROOT, Cache
from pipelines._contracts import contracts
from seatrial.errors import InvalidInput, Unavailable


def made(name: str, digest: str = "sha256:" + "a" * 64, packed: int = 1, unpacked: int = 1) -> Built:
    return Built(
        name=name,
        key=f"{name.removeprefix('seatrial/')}-0123456789ab",
        digest=digest,
        bytes=packed,
        unpacked_bytes=unpacked,
        user="10001:10001",
        entrypoint=("python3",),
    )


def image(name: str, *bases: str) -> Image:
    arguments = {f"ARG_{number}": base for number, base in enumerate(bases)}
    return Image(name=name, dockerfile="x", packed_mb=1, unpacked_mb=2, bases=arguments)


# The catalogue


def test_every_step_has_its_image_under_the_name_that_templates_use() -> None:
    assert sorted(step.name for step in STEPS) == sorted(f"seatrial/{contracted.name}" for contracted in contracts())


def test_every_image_that_a_template_names_is_built() -> None:
    text = "".join(path.read_text() for path in (ROOT / "workflow_templates").glob("*.yaml"))
    named_there = {line.split("image:")[1].strip() for line in text.splitlines() if " image: seatrial/" in line}
    assert named_there <= {one.name for one in IMAGES if one.pushed}
    assert named_there


@pytest.mark.parametrize("one", IMAGES, ids=lambda one: one.short)
def test_a_dockerfiles_arguments_are_the_images_that_it_is_given(one: Image) -> None:
    before = one.path.read_text().split("FROM", maxsplit=1)[0]
    assert {line.removeprefix("ARG ") for line in before.splitlines() if line.startswith("ARG ")} == set(one.bases)
    assert set(one.bases.values()) <= {other.name for other in IMAGES}


@pytest.mark.parametrize("one", IMAGES, ids=lambda one: one.short)
def test_no_stage_is_a_from_alone_which_buildah_leaves_mounted(one: Image) -> None:
    words = [line.split()[0] for line in one.path.read_text().splitlines() if line.split()[:1] and line[0].isupper()]
    assert not [here for here, after in zip(words, [*words[1:], "FROM"], strict=True) if here == after == "FROM"]


def test_only_known_images_may_run_as_root() -> None:
    lines = {one.name: one.path.read_text().splitlines() for one in IMAGES}
    last = {name: [line for line in text if line.startswith("USER ")][-1:] for name, text in lines.items()}
    root = {name for name, users in last.items() if users != ["USER 10001:10001"]}
    assert root == {"seatrial/uv", *check.ROOT_ALLOWED}


def test_every_image_that_is_pushed_is_started_once_by_the_check() -> None:
    assert set(check.TRIALS) == {one.name for one in IMAGES if one.pushed}


# The order


def in_order(images: list[Image], fails: str = "") -> tuple[list[str], dict[str, Built]]:
    begun: list[str] = []

    def make(one: Image, done: Mapping[str, Built]) -> Report:
        assert set(one.bases.values()) <= set(done)
        begun.append(one.name)
        if one.name == fails:
            raise Unavailable("away")
        return Report(built=made(one.name), seconds=0, new=True)

    return begun, build.in_order(images, make, lambda _: None)


def test_an_image_is_made_after_those_it_stands_on() -> None:
    images = [image("seatrial/c", "seatrial/b", "seatrial/a"), image("seatrial/b", "seatrial/a"), image("seatrial/a")]
    begun, done = in_order(images)
    assert begun == ["seatrial/a", "seatrial/b", "seatrial/c"]
    assert set(done) == set(begun)


def test_nothing_stands_on_an_image_that_failed() -> None:
    with pytest.raises(Unavailable, match="away"):
        in_order([image("seatrial/b", "seatrial/a"), image("seatrial/a")], fails="seatrial/a")


# What decides an image


@pytest.fixture
def given(tmp_path: Path) -> inputs.Inputs:
    (tmp_path / "file").write_text("content")
    return inputs.Inputs(
        image=image("seatrial/x"),
        dockerfile="FROM ${BASE}\nCOPY file /\n",
        files={"file": tmp_path / "file"},
        bases={"BASE": made("seatrial/a")},
    )


def test_equal_inputs_have_one_key(given: inputs.Inputs) -> None:
    assert replace(given, files=dict(given.files)).key == given.key
    assert given.key.startswith("x-")


def test_the_dockerfile_a_base_and_a_file_decide_the_key(given: inputs.Inputs, tmp_path: Path) -> None:
    keys = {
        given.key,
        replace(given, dockerfile=given.dockerfile + "USER 1\n").key,
        replace(given, bases={"BASE": made("seatrial/a", digest="sha256:" + "b" * 64)}).key,
    }
    (tmp_path / "file").write_text("other")
    assert len({*keys, given.key}) == 4


def test_nothing_is_found_before_it_is_built(tmp_path: Path) -> None:
    assert build.found(Cache(tmp_path)) == {}


def test_what_is_built_is_found_again_by_its_key(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    one = made("seatrial/x")
    cache.layout(one.key).mkdir(parents=True)
    assert built.find(one.key, cache) is None
    built.write(one, cache)
    assert built.find(one.key, cache) == one


# Sizes


@pytest.mark.parametrize(
    ("sizes", "what"),
    [((1_000_001, 1), "1.0 MB compressed"), ((1, 2_000_001), "2.0 MB unpacked")],
)
def test_an_image_over_its_bound_is_refused(sizes: tuple[int, int], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        build.check_size(image("seatrial/x"), made("seatrial/x", packed=sizes[0], unpacked=sizes[1]))


def test_an_image_at_its_bound_is_taken() -> None:
    build.check_size(image("seatrial/x"), made("seatrial/x", packed=1_000_000, unpacked=2_000_000))


def test_a_step_without_machine_learning_is_small() -> None:
    small = {"resolve-release", "deploy-model", "run-canary", "settle-release"}
    assert {one.short for one in STEPS if one.packed_mb <= 70 and one.unpacked_mb <= 250} == small


# The check


def specification(name: str, user: str) -> dict[str, Any]:
    trial = check.TRIALS[name]
    settings = {"User": user, "Entrypoint": ["python3"], "Env": ["A=b"], "WorkingDir": "/app"}
    return check.specification(Path("/image"), Path("/somewhere"), settings, trial)


def test_an_image_is_started_without_rights_network_or_a_root_it_may_write() -> None:
    wanted = specification("seatrial/base", "10001:10001")
    assert wanted["root"] == {"path": "/image", "readonly": True}
    process = wanted["process"]
    assert process["user"] == {"uid": 10001, "gid": 10001}
    assert process["capabilities"] == {"bounding": [], "effective": [], "permitted": []}
    assert process["noNewPrivileges"] is True
    assert {"type": "network"} in wanted["linux"]["namespaces"]


def test_the_builder_has_the_three_rights_that_its_template_gives_it() -> None:
    wanted = specification("seatrial/kaniko", "")
    rendered = (ROOT / "workflow_templates/release.yaml").read_text()
    assert all(f"- {right.removeprefix('CAP_')}\n" in rendered for right in check.BUILDER_CAPABILITIES)
    assert wanted["process"]["capabilities"]["effective"] == list(check.BUILDER_CAPABILITIES)


def test_an_image_is_known_with_and_without_its_prefix() -> None:
    assert named("base") is named("seatrial/base")
