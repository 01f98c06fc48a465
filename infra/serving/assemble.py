"""Makes a `tritonserver` that runs from the nvidia-pytriton wheel: on a laptop and in the serving base image.

    <python of Triton's environment> assemble.py <folder>

writes under <folder>, which stays movable as long as the environment lies at <folder>/venv or at a fixed place:

    backends/python/         the wheel's Python backend: library, stub of this Python, utilities
    backends/onnxruntime/    model.py beside this file: the core finds it by the name `onnxruntime`
    bin/tritonserver         sets the paths and runs the real one with the arguments given

Only the standard library is used: it runs inside Triton's own environment.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import sys
import sysconfig
from pathlib import Path

BACKEND = Path(__file__).resolve().parent / "backend"

WRAPPER = """\
#!/bin/sh
# tritonserver as the wheel ships it, with the paths that it needs. bash must be there: Triton starts its stubs by it.
root=$(dirname "$(dirname "$(readlink -f "$0")")")
# The copied stub has lost its own search path; it also needs libpython of this interpreter.
export LD_LIBRARY_PATH="{libraries}:{libpython}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
# The stub's interpreter is isolated: it takes its packages from the first python3 on PATH.
export PATH="{scripts}:$PATH"
exec "{server}/bin/tritonserver" --backend-directory="$root/backends" --cache-directory="{server}/caches" "$@"
"""


def assemble(folder: Path) -> Path:
    """Write the backends and the wrapper under `folder`; give back the wrapper."""
    site = _site_packages()
    server = site / "pytriton" / "tritonserver"
    _copy_backends(server, folder / "backends")
    wrapper = folder / "bin" / "tritonserver"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(
        WRAPPER.format(
            libraries=_movable(site / "nvidia_pytriton.libs", folder),
            libpython=f"{sysconfig.get_config_var('LIBDIR')}:{sys.base_prefix}/lib",
            scripts=_movable(Path(sys.executable).absolute().parent, folder),
            server=_movable(server, folder),
        )
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return wrapper


def _site_packages() -> Path:
    found = importlib.util.find_spec("pytriton")
    if found is None or found.origin is None:
        raise SystemExit("nvidia-pytriton is not installed for this Python; run this with Triton's own environment")
    return Path(found.origin).parent.parent


def _copy_backends(server: Path, backends: Path) -> None:
    """Copies, not links: Triton refuses a library that `escapes backend directory`."""
    stub = (
        server / "python_backend_stubs" / f"{sys.version_info[0]}.{sys.version_info[1]}" / "triton_python_backend_stub"
    )
    python = backends / "python"
    python.mkdir(parents=True, exist_ok=True)
    library = server / "backends" / "python"
    for source in (library / "libtriton_python.so", library / "triton_python_backend_utils.py", stub):
        shutil.copy2(source, python / source.name)
    shutil.copytree(BACKEND / "onnxruntime", backends / "onnxruntime", dirs_exist_ok=True)


def _movable(path: Path, folder: Path) -> str:
    """`path` as the wrapper writes it: by its own place where it lies under `folder`."""
    absolute = os.path.abspath(folder)  # noqa: PTH100 - resolve() would follow the environment's python link
    return str(path).replace(absolute, "$root", 1) if str(path).startswith(absolute + os.sep) else str(path)


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
