from __future__ import annotations

import ast
from pathlib import Path

import pytest

from infra.images import context
from infra.images.catalogue import named
from infra.images.place import ROOT
from seatrial.errors import InvalidInput

DOCKERFILE = """\
FROM x AS build
COPY --from=uv /uv /uv
ADD root.tar /
COPY library \\
     one.txt /app/
FROM y
COPY --from=build /app /app
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("library/a.py", "library/__pycache__/a.pyc", "seatrial/b.py", "seatrial/app/c.py", "one.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_what_is_copied_is_read_from_the_dockerfile() -> None:
    assert context.sources(DOCKERFILE) == ["root.tar", "library", "one.txt"]


def test_only_what_is_copied_is_in_the_context(tree: Path) -> None:
    found = context.files(DOCKERFILE, tree, {"root.tar": tree / "elsewhere.tar"})
    assert list(found) == ["library/a.py", "one.txt", "root.tar"]
    assert found["root.tar"] == tree / "elsewhere.tar"


def test_the_persons_side_is_left_out_unless_a_file_of_it_is_named(tree: Path) -> None:
    assert list(context.files("COPY seatrial /app\n", tree, {})) == ["seatrial/b.py"]
    assert list(context.files("COPY seatrial/app/c.py /app/\n", tree, {})) == ["seatrial/app/c.py"]


def test_a_file_that_is_not_there_is_named(tree: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'nothing\.txt', which is not in the repository"):
        context.files("COPY nothing.txt /\n", tree, {})


def test_a_clones_own_rights_have_no_say(tree: Path) -> None:
    files = context.files("COPY library one.txt /\n", tree, {})
    before = context.digest(files)
    (tree / "one.txt").chmod(0o600)
    assert context.digest(files) == before
    context.lay_out(files, tree / "out")
    assert {oct(path.stat().st_mode & 0o777) for path in (tree / "out").rglob("*") if path.is_file()} == {"0o644"}
    assert oct((tree / "out/library").stat().st_mode & 0o777) == "0o755"


def test_a_program_stays_one(tree: Path) -> None:
    files = context.files("COPY one.txt /\n", tree, {})
    before = context.digest(files)
    (tree / "one.txt").chmod(0o700)
    assert context.digest(files) != before
    context.lay_out(files, tree / "out")
    assert oct((tree / "out/one.txt").stat().st_mode & 0o777) == "0o755"


def test_another_content_is_another_context(tree: Path) -> None:
    files = context.files("COPY library /\n", tree, {})
    before = context.digest(files)
    (tree / "library/a.py").write_text("changed")
    assert context.digest(files) != before


def test_other_builders_leave_out_the_same() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {*context.LEFT_OUT, "**/__pycache__"} <= set(ignored)


def reached(module: str) -> set[str]:
    """Files of ours that importing a module reads, from the repository's root."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    found, waiting = set(), {path}
    while waiting:
        file = waiting.pop()
        packages = {p / "__init__.py" for p in file.parents if p != ROOT and p.is_relative_to(ROOT)}
        found |= {file, *packages}
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                files = {ROOT / f"{name.replace('.', '/')}.py" for name in names}
                waiting |= {file for file in files if file.is_file()} - found
    return {file.relative_to(ROOT).as_posix() for file in found}


def test_the_builders_image_holds_what_it_imports_and_no_more() -> None:
    copied = context.sources(named("kaniko").path.read_text())
    assert {name for name in copied if name.startswith(("seatrial/", "steps/"))} == reached("seatrial.app.builder")
