"""Gives a registry the built images, unchanged, and writes down under which digests it has them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from infra.images import built
from infra.images.build import SIDE_BY_SIDE
from infra.images.built import Built
from infra.images.catalogue import named
from infra.images.place import ROOT, Cache
from infra.images.programs import required, run
from seatrial.app.pushing import may_be_plain
from seatrial.errors import IntegrityError, shortened

PREFIX: Final = "10.199.0.1:5000/seatrial"
"""The test cluster's registry."""
IMAGES_FILE: Final = ROOT / ".seatrial" / "cluster" / "images.json"

Pushed = dict[str, dict[str, Any]]
"""Name, like seatrial/base → its `repository`, `digest` and `bytes`, compressed."""


def push(images: Mapping[str, Built], prefix: str, cache: Cache, say: Callable[[Built], None]) -> Pushed:
    """Push every image that runs somewhere; the same content is sent once.

    Args:
        images: Name → image, as `build` gives them.
        prefix: registry/path; repositories are <prefix>/<name without seatrial/>.
        cache: Where they lie.
        say: Told of each image as the registry has it.

    Raises:
        Unavailable: The registry does not answer.
        IntegrityError: It has an image under another digest.
    """
    required("skopeo")
    wanted = [made for name, made in images.items() if named(name).pushed]
    with cache.shared("storage"), ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        entries = []
        for made, entry in zip(wanted, pool.map(lambda one: _push(one, prefix, cache), wanted), strict=True):
            entries.append((made.name, entry))
            say(made)
    return dict(sorted(entries))


def write(pushed: Pushed, path: Path) -> None:
    """Write images.json: whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(pushed, indent=2, sort_keys=True) + "\n")
    partial.rename(path)


def _push(made: Built, prefix: str, cache: Cache) -> dict[str, Any]:
    repository, log = f"{prefix}/{named(made.name).short}", cache.log(f"push-{named(made.name).short}")
    log.unlink(missing_ok=True)
    plain = may_be_plain(prefix.partition("/")[0])
    with tempfile.TemporaryDirectory() as folder:
        digest_file = Path(folder, "digest")
        command = [
            "skopeo", "copy", "--quiet", "--preserve-digests", "--retry-times=3", f"--digestfile={digest_file}",
            f"--src-shared-blob-dir={cache.blobs}", *(["--dest-tls-verify=false"] if plain else []),
            f"oci:{cache.layout(made.key)}:{built.TAG}", f"docker://{repository}:{made.tag}",
        ]  # fmt: skip
        run(command, log=log)
        sent = digest_file.read_text().strip()
    inspect = ["skopeo", "inspect", "--format={{.Digest}}", *(["--tls-verify=false"] if plain else [])]
    held = run([*inspect, f"docker://{repository}:{made.tag}"], log=log).strip()
    for where, found in (("was sent", sent), ("is held", held)):
        if found != made.digest:
            raise IntegrityError(f"{repository} {where} as {shortened(found)}, but was built as {made.digest}")
    return {"repository": repository, "digest": made.digest, "bytes": made.bytes}
