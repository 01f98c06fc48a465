"""The one file of versions, read."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seatrial.errors import InvalidInput, shortened

FILE: Final = Path(__file__).with_name("versions.toml")


class Module(BaseModel):
    """A Go module at one version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    version: str = Field(pattern=r"^v\d+\.\d+\.\d+$")

    @property
    def number(self) -> str:
        """The version without its v."""
        return self.version.removeprefix("v")


class Versions(BaseModel):
    """What the cluster is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    go: str = Field(pattern=r"^\d+\.\d+$", description="the least Go that builds all of it")
    modules: dict[str, Module]
    packages: dict[str, str] = Field(description="program → Debian package")
    unpacked: dict[str, str] = Field(description="Debian package that is unpacked, not installed → its program")


def read(file: Path = FILE) -> Versions:
    """The versions in `file`.

    Raises:
        InvalidInput: It is not as `Versions` says.
    """
    try:
        return Versions.model_validate(tomllib.loads(file.read_text()))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise InvalidInput(f"{file} does not say the versions of the cluster: {shortened(error)}") from error
