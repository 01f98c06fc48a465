"""What is wrong with a model's folder, or with the place for local state, ends as one line that says what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes_person import MODEL, ROOT, Person

pytestmark = [pytest.mark.integration, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def person(new_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    somebody = Person(home=new_home(), source=tmp_path_factory.mktemp("source"))
    yield somebody
    somebody.says("down", "--force")


def without_a_suite(folder: Path) -> None:
    (folder / "expectations.json").unlink()


def with_an_empty_suite(folder: Path) -> None:
    (folder / "expectations.json").write_text("\n")


def elsewhere(folder: Path) -> None:
    folder.rename(folder.parents[1] / "elsewhere")
    folder.symlink_to(folder.parents[1] / "elsewhere")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without_a_suite, "validate-data: the model has no expectations.json: write a Great"),
        (with_an_empty_suite, "validate-data: expectations.json is empty; a Great Expectations suite is wanted"),
        (elsewhere, f"resolve-release: {MODEL} is a symlink: a model's folder must hold its own files"),
    ],
    ids=["no suite", "empty suite", "symlink"],
)
def test_a_spoilt_folder_is_wrong_input(person: Person, spoil: Callable[[Path], None], says: str) -> None:
    if person.folder.is_symlink():
        person.folder.unlink()
    shutil.rmtree(person.folder, ignore_errors=True)
    shutil.rmtree(person.source / "models" / "elsewhere", ignore_errors=True)
    person.prepare()
    spoil(person.folder)
    with person.release() as process:
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 78, out
    assert says in out.splitlines()[-1]
    assert "Traceback" not in out


IN_A_DISK_OF_ITS_OWN = """
mount -t tmpfs -o size="$1" none "$2"
mkdir -p "$2/home"
[ "$3" = rw ] || mount -o "remount,$3" "$2"
SEATRIAL_HOME="$2/home" exec "$4" -m seatrial.app.cli up
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount")
@pytest.mark.parametrize(
    ("size", "mode", "code", "says"),
    [
        ("512m", "ro", 78, "home/sandbox.lock cannot be used: read-only file system"),
        ("1m", "rw", 75, "home has 1 MiB left, the sandbox needs 256: make room, or set SEATRIAL_HOME to a folder"),
    ],
    ids=["read-only", "full"],
)
def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path, size: str, mode: str, code: int, says: str) -> None:
    words = ["unshare", "--mount", "sh", "-euc", IN_A_DISK_OF_ITS_OWN, "sh", size, str(tmp_path), mode, sys.executable]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
