"""Where the command works: the project, its local state, and the models in a source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from seatrial.errors import InvalidInput
from seatrial.names import model_name

ROOT: Final = Path(__file__).resolve().parents[3]
"""The project."""
HOME_VARIABLE: Final = "SEATRIAL_HOME"
"""Names another folder for all local state."""
TEMPLATES: Final = ROOT / "workflow_templates"
SPEC_FILE: Final = "model.yaml"


def home() -> Path:
    """All local state: `.seatrial` in the project, unless SEATRIAL_HOME names another folder."""
    return Path(os.environ.get(HOME_VARIABLE) or ROOT / ".seatrial").expanduser().resolve()


def models_folder(source: Path) -> Path:
    """Where the models' folders are in a source: in `models/`, or at its top when it has none."""
    return source / "models" if (source / "models").is_dir() else source


def known_models(source: Path) -> list[str]:
    """The names of the models in a source, sorted."""
    return sorted(path.parent.name for path in models_folder(source).glob(f"*/{SPEC_FILE}"))


def checked_model(text: str, known: list[str]) -> str:
    """`text` itself when it is one of the known models.

    Raises:
        InvalidInput: It is none; the known ones are named.
    """
    among = f"known models: {', '.join(known) or 'none'}"
    try:
        name = model_name(text)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; {among}") from error
    if name not in known:
        raise InvalidInput(f"there is no model {name!r}; {among}")
    return name
