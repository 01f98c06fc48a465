"""The one grammar of `depends`, `when` and a retry's `expression`.

Argo reads these three with three libraries (its own, govaluate, expr-lang); what we render is the part that they share:
texts and numbers, `== != && || ! in matches`, parentheses, names with dots and dashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from lark import Lark, Token, Tree
from lark.exceptions import LarkError

from seatrial.errors import InvalidInput, shortened

Lookup = Callable[[str], Any]
"""A name's value: for `depends` a bool, for a retry what `lastRetry.*` is."""

GRAMMAR: Final = r"""
?start: or_
?or_: and_ ("||" and_)*
?and_: not_ ("&&" not_)*
?not_: "!" not_ -> negated
     | compared
?compared: value "==" value -> equal
         | value "!=" value -> different
         | value "in" list -> contained
         | value "matches" value -> matched
         | value
?value: "(" or_ ")"
      | TEXT -> text
      | NUMBER -> number
      | BOOL -> boolean
      | NAME -> name
list: "[" [value ("," value)*] "]"
BOOL.2: /(true|false)\b/
TEXT: /'(\\.|[^'\\])*'/ | /"(\\.|[^"\\])*"/
NUMBER: /-?[0-9]+(\.[0-9]+)?/
NAME: /[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*/
%ignore /\s+/
"""


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", maybe_placeholders=False)


@lru_cache(maxsize=512)
def parse(text: str) -> Tree[Token]:
    """The tree of an expression.

    Raises:
        InvalidInput: It is not one of this grammar.
    """
    try:
        tree = _parser().parse(text)
    except LarkError as error:
        fault = str(error).partition("\n")[0]  # what else was possible comes in an order of chance
        raise InvalidInput(f"the expression {shortened(text)!r} is not understood: {shortened(fault)}") from error
    return tree if isinstance(tree, Tree) else Tree("value", [tree])


def names(text: str) -> frozenset[str]:
    """The names that an expression asks for."""
    return frozenset(
        str(token) for part in parse(text).iter_subtrees() if part.data == "name" for token in part.children
    )


def of_retries(text: str) -> frozenset[str]:
    """The operators that an expression uses and that only a retry's expression has."""
    words = {"contained": "in", "matched": "matches"}
    return frozenset(words[part.data] for part in parse(text).iter_subtrees() if part.data in words)


def is_true(text: str, lookup: Lookup) -> bool:
    """Whether the expression holds.

    Raises:
        InvalidInput: It is not understood, or it gives a text or a number instead of true or false.
    """
    value = _value(parse(text), lookup)
    if not isinstance(value, bool):
        raise InvalidInput(f"the expression {shortened(text)!r} must be true or false; it is {shortened(repr(value))}")
    return value


def _value(tree: Any, lookup: Lookup) -> Any:  # noqa: ANN401 - a text, a number, a bool, or a list of them
    return _RULES[tree.data](tree.children, lookup)


def _bool(tree: Any, lookup: Lookup) -> bool:  # noqa: ANN401 - lark's tree
    value = _value(tree, lookup)
    if not isinstance(value, bool):
        raise InvalidInput(f"&&, || and ! join true and false; got {shortened(repr(value))}")
    return value


def _text(parts: list[Any], _: Lookup) -> str:
    return re.sub(r"\\(.)", r"\1", str(parts[0])[1:-1])


_RULES: Final[dict[str, Callable[[list[Any], Lookup], Any]]] = {
    "or_": lambda parts, lookup: any(_bool(part, lookup) for part in parts),
    "and_": lambda parts, lookup: all(_bool(part, lookup) for part in parts),
    "negated": lambda parts, lookup: not _bool(parts[0], lookup),
    "equal": lambda parts, lookup: _value(parts[0], lookup) == _value(parts[1], lookup),
    "different": lambda parts, lookup: _value(parts[0], lookup) != _value(parts[1], lookup),
    "contained": lambda parts, lookup: _value(parts[0], lookup) in _value(parts[1], lookup),
    "matched": lambda parts, lookup: re.search(_value(parts[1], lookup), _value(parts[0], lookup)) is not None,
    "list": lambda parts, lookup: [_value(part, lookup) for part in parts],
    "text": _text,
    "number": lambda parts, _: float(parts[0]),
    "boolean": lambda parts, _: str(parts[0]) == "true",
    "name": lambda parts, lookup: lookup(str(parts[0])),
}
