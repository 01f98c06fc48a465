"""`python -m pipelines render`: write the generated files, or with --check say which are stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipelines.render import Rendering
from seatrial.errors import StepError

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 done or all fresh, 1 something is stale, 78 the models' folder is wrong."""
    parser = argparse.ArgumentParser(prog="python -m pipelines", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    render = commands.add_parser("render", help="write workflow_templates/ and the README's step table")
    render.add_argument("--check", action="store_true", help="write nothing; exit 1 when something is stale")
    render.add_argument("--models", type=Path, default=ROOT / "models", help="folder of models")
    render.add_argument("--out", type=Path, default=ROOT / "workflow_templates", help="where the templates go")
    render.add_argument("--readme", type=Path, default=ROOT / "README.md", help="document that holds the step table")
    given = parser.parse_args(arguments)
    rendering = Rendering(models=given.models, out=given.out, readme=given.readme)
    try:
        return _check(rendering) if given.check else _write(rendering)
    except StepError as error:
        sys.stderr.write(f"render: {error}\n")
        return error.exit_code


def _check(rendering: Rendering) -> int:
    messages = rendering.stale()
    if messages:
        sys.stderr.write("\n".join([*messages, "run `make render` and commit what it writes", ""]))
    return 1 if messages else 0


def _write(rendering: Rendering) -> int:
    changed = rendering.write()
    sys.stdout.write("".join(f"wrote {path}\n" for path in changed) or "nothing changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
