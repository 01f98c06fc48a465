"""What the owner's process left in its folder, read as what it is: written by somebody else.

No link is followed and no pipe is waited for: the folder's owner must not make this process read a file of its own.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Annotated, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seatrial.errors import InvalidInput, shortened

NOTE_MAX: Final = 16 << 20
"""Bytes of told.json and fault.json."""
MODEL_MAX: Final = 2 << 30
"""Bytes of a model or its answers: what one protobuf message can hold."""

Word = Annotated[str, Field(max_length=200)]


class Told(BaseModel):
    """told.json."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    losses: list[float]
    versions: dict[Word, Word] = Field(max_length=100)


class Fault(BaseModel):
    """fault.json."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    error: str
    where: str


Note = TypeVar("Note", Told, Fault)


def read(folder: Path, name: str, most: int) -> bytes:
    """A file of the folder.

    Raises:
        InvalidInput: It is not there, no plain file, or has more than `most` bytes.
    """
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidInput(f"training ended without a readable {name}: {shortened(error.strerror)}") from error
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_size > most:
        os.close(descriptor)
        raise InvalidInput(f"training left no plain file {name} of at most {most} bytes")
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def note(folder: Path, name: str, kind: type[Note]) -> Note:
    """told.json or fault.json.

    Raises:
        InvalidInput: It is not there, or not what the child writes.
    """
    try:
        return kind.model_validate_json(read(folder, name, NOTE_MAX))
    except ValidationError as error:
        raise InvalidInput(f"training left a {name} that is none: {shortened(error)}") from error


def answer(folder: Path) -> NDArray[np.float64]:
    """answer.npy: the framework's own answers.

    Raises:
        InvalidInput: It is not there, or no array of float64.
    """
    try:
        found = np.load(io.BytesIO(read(folder, "answer.npy", MODEL_MAX)), allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError, SyntaxError) as error:
        raise InvalidInput(f"training left an answer.npy that is none: {shortened(error)}") from error
    if not isinstance(found, np.ndarray) or found.dtype != np.float64:
        raise InvalidInput("training left an answer.npy that is no array of float64")
    return found
