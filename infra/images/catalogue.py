"""Which images there are, what each stands on and how large it may get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from infra.images.place import ROOT

BASE, GIT, TRITON, UV = "seatrial/base", "seatrial/git", "seatrial/triton", "seatrial/uv"
PYTHON_UV: Final[Mapping[str, str]] = {"PYTHON_IMAGE": BASE, "UV_IMAGE": UV}


@dataclass(frozen=True, kw_only=True)
class Image:
    """One image."""

    name: str
    dockerfile: str
    """From the repository's root, which the Dockerfile's own paths count from too."""
    packed_mb: int
    """Most megabytes, compressed: what a node fetches."""
    unpacked_mb: int
    """Most megabytes on a node's disk."""
    bases: Mapping[str, str] = field(default_factory=dict)
    """Build argument → the image that it names."""
    root: str | None = None
    """The Debian root that the Dockerfile adds as root.tar."""
    pushed: bool = True

    @property
    def short(self) -> str:
        """The name without seatrial/."""
        return self.name.removeprefix("seatrial/")

    @property
    def path(self) -> Path:
        """Of the Dockerfile."""
        return ROOT / self.dockerfile


def _ours(name: str, packed_mb: int, unpacked_mb: int, *, bases: Mapping[str, str], root: str | None = None) -> Image:
    return Image(
        name=f"seatrial/{name}",
        dockerfile=f"infra/images/{name}/Dockerfile",
        packed_mb=packed_mb,
        unpacked_mb=unpacked_mb,
        bases=bases,
        root=root,
    )


def _step(package: str, packed_mb: int, unpacked_mb: int, **bases: str) -> Image:
    return Image(
        name=f"seatrial/{package.replace('_', '-')}",
        dockerfile=f"steps/{package}/Dockerfile",
        packed_mb=packed_mb,
        unpacked_mb=unpacked_mb,
        bases={**PYTHON_UV, **bases},
    )


STEPS: Final = (
    _step("resolve_release", 65, 215, GIT_IMAGE=GIT),
    _step("validate_data", 240, 720),
    _step("train_model", 310, 940),
    _step("evaluate_model", 150, 450),
    _step("package_model", 300, 860, SERVING_BASE=TRITON),
    _step("deploy_model", 70, 240),
    _step("run_canary", 70, 240),
    _step("settle_release", 50, 180),
)
"""Each step's image, named as the rendered templates name it."""

IMAGES: Final = (
    _ours("base", 24, 62, bases={}, root="base"),
    Image(name=UV, dockerfile="infra/images/uv/Dockerfile", packed_mb=24, unpacked_mb=50, pushed=False),
    _ours("git", 45, 110, bases={"PYTHON_IMAGE": BASE}, root="git"),
    _ours("triton", 150, 400, bases=PYTHON_UV, root="triton"),
    _ours("kaniko", 45, 115, bases=PYTHON_UV, root="kaniko"),
    _ours("git-server", 48, 115, bases={"GIT_IMAGE": GIT}, root="git-server"),
    *STEPS,
)
"""Every image."""


def named(name: str) -> Image:
    """The image with that name, with or without seatrial/; a KeyError for no image."""
    return {image.name: image for image in IMAGES}[name if "/" in name else f"seatrial/{name}"]
