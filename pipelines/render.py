"""Everything that is generated from pipelines and contracts, as path → text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipelines import _docs
from pipelines.release import release
from pipelines.settle import settle
from seatrial.errors import InvalidInput
from seatrial.names import model_name
from seatrial.spec import SPEC_FILE

HEADER: Final = "# Rendered from pipelines/ by `make render`. Never edited by hand.\n"
KUSTOMIZATION: Final = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
"""
"""So that an overlay can take the folder."""
SHOWN_DIFFERENCES: Final = 20
"""Lines of the difference that `stale` repeats per file."""


@dataclass(frozen=True)
class Rendering:
    """One rendering of all generated files.

    Args:
        models: The folder of models.
        out: Where the workflow templates go.
        readme: The document whose step table is generated; it need not be there.
    """

    models: Path
    out: Path
    readme: Path

    def files(self) -> Mapping[Path, str]:
        """Path → whole text; the same inputs give the same bytes."""
        rendered = {"release.yaml": release(model_names(self.models)), "settle.yaml": settle()}
        files = {
            self.out / name: HEADER + whole.to_yaml(allow_unicode=True, width=120) for name, whole in rendered.items()
        }
        files[self.out / "kustomization.yaml"] = HEADER + KUSTOMIZATION + "".join(f"- {name}\n" for name in rendered)
        if self.readme.is_file():
            files[self.readme] = _docs.with_table(self.readme.read_text(encoding="utf-8"))
        return files

    def write(self) -> list[Path]:
        """Write what differs; its paths. Templates that nothing renders any more are removed."""
        changed = [path for path, text in self.files().items() if _read(path) != text]
        for path in changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.partial")
            partial.write_text(self.files()[path], encoding="utf-8")
            partial.rename(path)
        left_over = self._left_over()
        for path in left_over:
            path.unlink()
        return [*changed, *left_over]

    def stale(self) -> list[str]:
        """What stands on disk and differs from a fresh rendering: one message per file, empty when all is fresh."""
        messages = [
            f"{path} differs from what pipelines/ renders:\n{_difference(_read(path), text)}"
            for path, text in self.files().items()
            if _read(path) != text
        ]
        return [*messages, *(f"{path} is rendered by nothing: remove it" for path in self._left_over())]

    def _left_over(self) -> list[Path]:
        return sorted(set(self.out.glob("*.yaml")) - set(self.files()))


def model_names(models: Path) -> list[str]:
    """The models, sorted: folders with a model.yaml.

    Raises:
        InvalidInput: The folder is not there, or one of the models' names is not a model name.
    """
    if not models.is_dir():
        raise InvalidInput(f"models are folders in {models}; there is no such folder")
    return sorted(model_name(path.parent.name) for path in models.glob(f"*/{SPEC_FILE}"))


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _difference(old: str | None, new: str) -> str:
    if old is None:
        return "  it is not there"
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "on disk", "rendered", lineterm="", n=1))
    more = [f"  … {len(lines) - SHOWN_DIFFERENCES} more lines"] if len(lines) > SHOWN_DIFFERENCES else []
    return "\n".join([*(f"  {line}" for line in lines[:SHOWN_DIFFERENCES]), *more])
