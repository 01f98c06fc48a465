"""Arrays as an `.npz` whose bytes follow from the arrays alone; those of `numpy.savez` differ with Python's patch."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_ALWAYS: Final = (1980, 1, 1, 0, 0, 0)


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write name → array, none of objects; `numpy.load` reads it."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _ALWAYS), member.getvalue())
