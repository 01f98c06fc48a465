"""A Dockerfile of FROM, COPY, ENV, LABEL, USER, WORKDIR, ENTRYPOINT and CMD; anything else is refused by its line."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Final

from seatrial.errors import InvalidInput, shortened

KNOWN: Final = ("FROM", "COPY", "ENV", "LABEL", "USER", "WORKDIR", "ENTRYPOINT", "CMD")


@dataclass(frozen=True)
class Instruction:
    """One instruction: `word` and what follows, taken apart."""

    line: int
    word: str
    arguments: tuple[str, ...]

    def pairs(self) -> dict[str, str]:
        """`NAME=value …` of ENV and LABEL."""
        pairs = [argument.partition("=") for argument in self.arguments]
        if any(not name or not equals for name, equals, _ in pairs):
            raise InvalidInput(f"line {self.line}: {self.word} takes NAME=value; got {shortened(self.arguments)}")
        return {name: value for name, _, value in pairs}


def parse(text: str) -> list[Instruction]:
    """The instructions, FROM first and once.

    Raises:
        InvalidInput: Another instruction, a flag, a variable, or a form that is not known; names the line.
    """
    instructions = [_instruction(line, logical) for line, logical in _logical_lines(text)]
    words = [instruction.word for instruction in instructions]
    if words[:1] != ["FROM"] or words.count("FROM") != 1:
        raise InvalidInput(f"a Dockerfile here has exactly one FROM, and it comes first; got {words}")
    return instructions


def _logical_lines(text: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    open_line, so_far = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        open_line = open_line or number
        if line.endswith("\\"):
            so_far += line[:-1] + " "
            continue
        found.append((open_line, so_far + line))
        open_line, so_far = 0, ""
    if so_far:
        raise InvalidInput(f"line {open_line}: the file ends inside an instruction")
    return found


def _instruction(line: int, text: str) -> Instruction:
    word, _, rest = text.partition(" ")
    word = word.upper()
    if word not in KNOWN:
        raise InvalidInput(f"line {line}: {shortened(word)} is not built here; known are {', '.join(KNOWN)}")
    if re.search(r"\$[A-Za-z_{]", rest):
        raise InvalidInput(f"line {line}: variables are not replaced here; write {shortened(rest)} out")
    arguments = _exec_form(line, word, rest) if word in {"ENTRYPOINT", "CMD"} else _words(line, rest)
    if not arguments or arguments[0].startswith("--"):
        raise InvalidInput(f"line {line}: {word} takes arguments and no flags; got {shortened(rest)!r}")
    return Instruction(line, word, arguments)


def _words(line: int, rest: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(rest))
    except ValueError as error:
        raise InvalidInput(f"line {line}: {error} in {shortened(rest)!r}") from error


def _exec_form(line: int, word: str, rest: str) -> tuple[str, ...]:
    try:
        value = json.loads(rest)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise InvalidInput(f'line {line}: {word} must be a list like ["program", "argument"]: no shell is used')
    return tuple(value)
