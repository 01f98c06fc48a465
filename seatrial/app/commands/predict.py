"""`seatrial predict`."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seatrial.errors import InvalidInput, StepError, Unavailable, shortened

if TYPE_CHECKING:
    from seatrial.app.commands._ports import Ports
    from seatrial.ports import Answer

COUNT_MAX = 10_000


def predict(  # noqa: PLR0917 - options of the command line
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model's name, like cart_abandonment.")],
    row: Annotated[str | None, typer.Option(help='Features, {"name": value, …}. Default: held-out rows.')] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Held-out rows by chance, not the first ones.")] = False,  # noqa: FBT002
    count: Annotated[int, typer.Option("-n", min=1, max=COUNT_MAX, help="How many rows.")] = 1,
    arm: Annotated[Literal["canary"] | None, typer.Option(help="Ask the candidate, at any weight.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,  # noqa: FBT002
) -> int:
    """Ask the model through the gateway, and say which version answered.

    Example:
        seatrial predict cart_abandonment -n 5

    Exit codes: 0 answered, 78 nobody serves or the row is wrong, 75 the gateway or the model is away.
    """
    from seatrial.app.commands import _console, _sandbox  # noqa: PLC0415

    ports = _sandbox.serving(model)
    state = ports.router.read(model)
    version = state.candidate if arm else state.champion
    if version is None:
        raise InvalidInput(
            f"nobody {'is on trial' if arm else 'serves'}: {model} has no {'candidate' if arm else 'champion'}"
        )
    asked = (
        [_of_row(ports, model, version, row)] * count
        if row
        else _held_out(ports, model, version, count, by_chance=sample)
    )
    answers = [(name, ports.predictions.ask(model, body, arm=arm)) for name, body in asked]
    if as_json:
        _console.print_json({"model": model, "answers": [_facts(name, answer) for name, answer in answers]})
    for name, answer in answers:
        if answer.status != 200:
            raise _refused(model, name, answer)
        if not as_json:
            _console.console().print(f"{model} v{answer.version} answered: {_words(answer)}", markup=False)
    return 0


def _held_out(ports: Ports, model: str, version: int, count: int, *, by_chance: bool) -> list[tuple[str, bytes]]:
    """Id and request of rows that the version never learned from."""
    from seatrial.triton import requests  # noqa: PLC0415

    kept = requests.parse(ports.paper(model, version, "replay.jsonl"))
    if not kept:
        raise InvalidInput(f"v{version} of {model} keeps no held-out rows: give one with --row")
    chosen = random.choices(kept, k=count) if by_chance else [kept[i % len(kept)] for i in range(count)]  # noqa: S311
    return [(example.id, requests.body(example)) for example in chosen]


def _of_row(ports: Ports, model: str, version: int, text: str) -> tuple[str, bytes]:
    """The request for a row that was given; the version's own spec says what belongs in it."""
    from seatrial.spec import Spec  # noqa: PLC0415
    from seatrial.triton.requests import PROTOCOL_TYPE  # noqa: PLC0415

    spec = Spec.model_validate_json(ports.paper(model, version, "spec.json"))
    try:
        values: Any = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f'--row must be JSON, {{"feature": value, …}}; got {shortened(repr(text))}') from error
    wanted = [feature.name for feature in spec.data.features]
    if not isinstance(values, dict) or set(values) != set(wanted):
        raise InvalidInput(f"--row must give exactly the features {wanted}; got {shortened(text)}")
    inputs = [
        {"name": f.name, "shape": [1, 1], "datatype": PROTOCOL_TYPE[f.dtype], "data": [values[f.name]]}
        for f in spec.data.features
    ]
    outputs = [{"name": spec.serving.output.name, "parameters": {"binary_data": False}}]
    return "row", json.dumps({"inputs": inputs, "outputs": outputs}).encode()


def _refused(model: str, name: str, answer: Answer) -> StepError:
    said = f"{model} did not answer for {name}: status {answer.status}: {answer.error}"
    return InvalidInput(said) if 400 <= answer.status < 500 and answer.status != 404 else Unavailable(said)


def _words(answer: Answer) -> str:
    return "  ".join(
        f"{name} {', '.join(f'{value:.3f}' for value in values)}" for name, values in answer.outputs.items()
    )


def _facts(name: str, answer: Answer) -> dict[str, Any]:
    return {
        "id": name,
        "status": answer.status,
        "version": answer.version,
        "outputs": {output: list(values) for output, values in answer.outputs.items()},
        "error": answer.error,
        "milliseconds": round(1000 * answer.seconds, 1),
    }
