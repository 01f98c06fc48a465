"""The data of an example model: its own `prepare.py` makes the file, the object store keeps it, DATA_URI names it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from seatrial import digests
from seatrial.errors import InvalidInput, Unavailable, shortened
from seatrial.ports import Store

PREPARE: Final = "prepare.py"
PREPARE_WITHIN_S: Final = 600
BUCKET: Final = "seatrial"


def checked_uri(text: str) -> str:
    """The URI that steps read; a path of this machine becomes a `file://` one.

    Raises:
        InvalidInput: A file that is missing or empty, or of another machine.
    """
    place = urlsplit(text)
    if place.scheme not in {"", "file"}:
        return text
    if place.scheme and place.netloc not in {"", "localhost"}:
        raise InvalidInput(f"a file:// URI names a file of this machine, file:///…; got the host {place.netloc!r}")
    path = Path(unquote(place.path) if place.scheme else text).expanduser().resolve()
    if not path.is_file():
        raise InvalidInput(f"the data must be a file with one row per question; there is none at {path}")
    if path.stat().st_size == 0:
        raise InvalidInput(f"the data at {path} is empty; one row per question is wanted")
    return path.as_uri()


def prepared(model_folder: Path, *, home: Path, say: Callable[[str], None]) -> Path:
    """The Parquet file that the model's `prepare.py` makes; made once for each text of `prepare.py`.

    Raises:
        InvalidInput: The model has no `prepare.py`, or it fails; its output is named.
        Unavailable: It took too long.
    """
    script, folder = model_folder / PREPARE, home / "data" / model_folder.name
    if not script.is_file():
        raise InvalidInput(
            f"{model_folder.name} has no {PREPARE} that makes its data: name the data with --data file:///… or s3://…"
        )
    file = folder / f"{_hex(digests.of_file(script))}.parquet"
    if not file.is_file():
        say(f"preparing the data of {model_folder.name}")
        folder.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f".{os.getpid()}.parquet")
        _prepare(script, partial, cache=folder / "raw", log=folder / "prepare.log")
        partial.rename(file)
    return file


def kept(file: Path, model_name: str, store: Store) -> str:
    """The URI of the file's content in the store, where it is written once."""
    key = f"data/{model_name}/{_hex(digests.of_file(file))}.parquet"
    if key not in store.keys(key):
        store.write_once(key, file.read_bytes())
    return f"s3://{BUCKET}/{key}"


def _prepare(script: Path, out: Path, *, cache: Path, log: Path) -> None:
    command = [sys.executable, str(script), "--out", str(out), "--cache", str(cache)]
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                command, stdout=output, stderr=subprocess.STDOUT, timeout=PREPARE_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{script} took more than {PREPARE_WITHIN_S} s; its output is in {log}") from error
    if done.returncode == Unavailable.exit_code:
        raise Unavailable(f"{script} cannot get its raw data now: {_last_line(log)}")
    if done.returncode != 0 or not out.is_file():
        raise InvalidInput(f"{script} failed ({done.returncode}): {_last_line(log)}; all of its output is in {log}")


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return shortened(lines[-1]) if lines else "it said nothing"


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
