"""Runs inside a build stage: `python3 slim.py FOLDER…` leaves out what no step imports, and compiles the rest.

Left out are packages' own tests, C headers, and what belongs to cloud services and clients that are not called. The
rest is compiled here, one file after the other so that the bytes are always the same: nobody may write into an image.
Only the standard library is used.
"""

from __future__ import annotations

import compileall
import py_compile
import shutil
import sys
from pathlib import Path

SERVICES = frozenset({"s3", "sts", "sso", "sso-oidc", "signin"})
"""Of botocore's 400: the store, and the ways to get credentials for it."""


def slim(folder: Path) -> None:
    """Remove what is not imported, then compile."""
    for path in sorted(folder.rglob("*"), key=lambda path: len(path.parts)):
        if path.is_dir() and not path.is_symlink() and _left_out(path):
            shutil.rmtree(path)
    compileall.compile_dir(
        folder,
        quiet=2,  # a package may bring files of a newer Python's syntax
        maxlevels=50,
        force=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _left_out(path: Path) -> bool:
    if path.parts[-3:-1] == ("botocore", "data"):
        return path.name not in SERVICES
    if path.parts[-2:] == ("kubernetes", "aio"):  # a second client of the same API, for asyncio
        return True
    if path.name == "tests":
        return any(path.glob("test_*.py")) or (path / "conftest.py").exists()
    return path.name == "include" and any(path.rglob("*.h"))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        slim(Path(name))
