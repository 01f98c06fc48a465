"""`seatrial render`."""

from __future__ import annotations

from typing import Annotated

import typer


def render(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when something is stale.")] = False,  # noqa: FBT002
) -> int:
    """Write workflow_templates/ and the README's step table from pipelines/, the contracts and the models' names.

    Example:
        seatrial render --check

    Exit codes: 0 written, or all fresh; 1 something is stale; 78 the models' folder is wrong.
    """
    from pipelines.__main__ import main  # noqa: PLC0415

    return main(["render", *(["--check"] if check else [])])
