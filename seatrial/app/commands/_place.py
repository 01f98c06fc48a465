"""Where a command works: on this machine, in its sandbox, or on a cluster. Decided here and nowhere else."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from seatrial.errors import InvalidInput
from seatrial.names import model_name

if TYPE_CHECKING:
    from seatrial.app.commands._ports import Ports

ROOT: Final = Path(__file__).resolve().parents[3]
"""The project."""
HOME_VARIABLE: Final = "SEATRIAL_HOME"
"""Names another folder for all local state."""
TEMPLATES: Final = ROOT / "workflow_templates"
SPEC_FILE: Final = "model.yaml"
NAMESPACE: Final = "seatrial"
"""Where an installed seatrial has its ConfigMaps and Workflows, unless its operator chose another one."""

Say = Callable[[str], None]

Context = Annotated[
    str | None, typer.Option("--context", metavar="CLUSTER", help="A context of the kubeconfig. Default: the sandbox.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", help="Of seatrial on that cluster: its ConfigMaps and Workflows.")
]


class Place(ABC):
    """Somewhere that models are served."""

    name: str
    """As a sentence names it: `the sandbox`, `cluster staging`."""

    @property
    @abstractmethod
    def models(self) -> list[str]:
        """The models that it knows, sorted."""

    @property
    @abstractmethod
    def ports(self) -> Ports | None:
        """Everything in it, reached; None: it is down."""

    @abstractmethod
    def reached(self) -> Ports:
        """Everything in it.

        Raises:
            InvalidInput: It is down.
        """

    @abstractmethod
    def tidy(self, models: list[str], say: Say) -> None:
        """Put right what a crash left, where nobody else does it."""

    @abstractmethod
    def settle(self, model: str, say: Say) -> None:
        """Put right what a crash left, on a person's word.

        Raises:
            Frozen: Somebody changed the route by hand.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """How the place itself is, for the status page."""


def place(context: str | None, namespace: str = NAMESPACE) -> Place:
    """The cluster that the context names; without one, the sandbox of this machine.

    Raises:
        InvalidInput: The kubeconfig has no such context, or there is no seatrial in that namespace.
    """
    if context is None:
        from seatrial.app.commands._sandbox import Laptop  # noqa: PLC0415 - heavy

        return Laptop()
    from seatrial.app.commands._cluster import OnCluster  # noqa: PLC0415 - heavy

    return OnCluster(context, namespace)


def serving(model: str, context: str | None = None, namespace: str = NAMESPACE) -> tuple[Place, Ports]:
    """The place, and everything in it, after checking that it knows the model.

    Raises:
        InvalidInput: There is no such model, or the place is down.
    """
    where = place(context, namespace)
    checked_model(model, where.models)
    return where, where.reached()


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
