"""The one file of versions, and what follows from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.cluster import versions
from infra.cluster.build import folder_name
from infra.cluster.recipes import RECIPES, SOURCES
from infra.cluster.toolchain import new_enough
from seatrial.errors import InvalidInput


def test_every_recipe_finds_its_versions() -> None:
    known = versions.read().modules
    assert {name for recipe in RECIPES for name in recipe.modules} == set(known)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('go = "1.26"\n[modules.x]\npath = "x"\nversion = "1.0.0"\n[packages]\n[unpacked]\n', "no v"),
        ('go = "1.26"\n[modules]\n[packages]\n[unpacked]\n[more]\n', "an unknown table"),
        ("[modules]\n[packages]\n[unpacked]\n", "no go"),
        ("go = ", "no TOML"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "versions.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=re.escape(str(file))):
        versions.read(file)


@pytest.mark.parametrize(("source", "modules"), [("kubernetes", ("kubernetes", "etcd")), ("coredns", ("coredns",))])
def test_locked_modules_are_at_the_versions_of_the_file(source: str, modules: tuple[str, ...]) -> None:
    locked = (SOURCES / source / "go.mod").read_text()
    for module in (versions.read().modules[name] for name in modules):
        assert re.search(
            rf"^(require|\t)\s*{re.escape(module.path)} {re.escape(module.version)}\b", locked, re.MULTILINE
        )


def test_a_part_lies_in_the_cache_under_its_versions() -> None:
    recipe = next(recipe for recipe in RECIPES if recipe.name == "kubernetes")
    modules = versions.read().modules
    assert re.fullmatch(r"kubernetes-1\.36\.3-etcd-3\.6\.8-[0-9a-f]{8}", folder_name(recipe, modules))
    raised = modules | {"etcd": modules["etcd"].model_copy(update={"version": "v3.6.9"})}
    assert folder_name(recipe, raised) != folder_name(recipe, modules)


@pytest.mark.parametrize(
    ("said", "enough"),
    [("go1.26", True), ("go1.26.8", True), ("go1.27rc1", True), ("go1.25.9", False), ("go2.0", True), ("devel", False)],
)
def test_go_is_new_enough_from_the_least_version_on(said: str, *, enough: bool) -> None:
    assert new_enough(said, "1.26") is enough
