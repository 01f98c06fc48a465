"""What a Dockerfile copies from the repository, and nothing else: laid out anew with one set of rights; its digest.

A clone's own file modes, its caches and files that no image takes have no say in an image.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from seatrial import digests
from seatrial.errors import InvalidInput

LEFT_OUT: Final = ("seatrial/app",)
"""In no image, unless a Dockerfile names a file of it; .dockerignore says the same to other builders."""
_JOINED = re.compile(r"\\\n\s*")


def sources(dockerfile: str) -> list[str]:
    """What COPY and ADD take from the context, in the Dockerfile's order."""
    lines = [line.split() for line in _JOINED.sub(" ", dockerfile).splitlines()]
    taken = [words[1:-1] for words in lines if words[:1] in (["COPY"], ["ADD"])]
    return [source for given in taken for source in given if not any(word.startswith("--from=") for word in given)]


def files(dockerfile: str, root: Path, extra: Mapping[str, Path]) -> dict[str, Path]:
    """Path in the context → file.

    Args:
        dockerfile: Its text.
        root: The repository.
        extra: Files that are made elsewhere, like root.tar.

    Raises:
        InvalidInput: The repository has no such file.
    """
    found: dict[str, Path] = {}
    for source in sources(dockerfile):
        if source in extra:
            found[source] = extra[source]
            continue
        inside = {path.relative_to(root).as_posix(): path for path in _matching(root, source)}
        if not inside:
            raise InvalidInput(f"a Dockerfile copies {source!r}, which is not in the repository")
        found.update(inside)
    return dict(sorted(found.items()))


def digest(given: Mapping[str, Path]) -> str:
    """The digest of a context: paths, contents and whether a file may be run."""
    return digests.of_json({name: [digests.of_file(path), _mode(path)] for name, path in given.items()})


def lay_out(given: Mapping[str, Path], folder: Path) -> None:
    """Write the context's files below `folder`, readable by all."""
    for name, path in given.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(_mode(path))
    for place in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        place.chmod(0o755)


def _matching(root: Path, source: str) -> Iterator[Path]:
    for path in sorted(root.glob(source.rstrip("/"))):
        inside = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in inside:
            name = file.relative_to(root).as_posix()
            kept = source.startswith(LEFT_OUT) or not name.startswith(tuple(f"{left}/" for left in LEFT_OUT))
            if file.is_file() and "__pycache__" not in file.parts and kept:
                yield file


def _mode(path: Path) -> int:
    return 0o755 if path.stat().st_mode & 0o100 else 0o644
