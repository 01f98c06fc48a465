"""YAML in which what stands in the file is what is read: no aliases, no key twice, nothing that readers disagree on.

PyYAML reads YAML 1.1, most others 1.2: to the one 010 is 8, 1:30 is 90, yes is true and 1e-5 is text; to the other 10,
text, text and a number. What both read alike is taken; 1e-5 is a number; all else has to be written otherwise.
Source: YAML 1.2.2, section 10.3.2 (core schema); yaml.org/type (int, float, bool).
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from seatrial.errors import InvalidInput, shortened

_NUMBER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*|(0|[1-9][0-9]*)?\.[0-9]+|(0|[1-9][0-9]*)\.)([eE][-+]?[0-9]+)?")
_ALIKE: Final = {
    "tag:yaml.org,2002:int": _NUMBER,
    "tag:yaml.org,2002:float": re.compile(_NUMBER.pattern + r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
    "tag:yaml.org,2002:bool": re.compile("true|True|TRUE|false|False|FALSE"),
}
"""Type to YAML 1.1 → the texts that are the same to YAML 1.2."""


class _Loader(yaml.SafeLoader):
    """A SafeLoader that refuses."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - PyYAML's type
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise InvalidInput(f"line {mark.line + 1}: YAML aliases are not allowed in a model spec; write it out")
        return super().compose_node(parent, index)

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:  # noqa: ANN401 - PyYAML's type
        plain = not self.peek_event().style  # type: ignore[no-untyped-call]
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        alike = _ALIKE.get(node.tag)
        if plain and alike is not None and not alike.fullmatch(node.value):
            kind = node.tag.rpartition(":")[2]
            raise InvalidInput(
                f"line {node.start_mark.line + 1}: {shortened(node.value)} is one thing to some readers of YAML and "
                f"another to others; write '{shortened(node.value)}' for the text, or the {kind} as in JSON"
            )
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise InvalidInput(f"line {key_node.start_mark.line + 1}: a key is text; got {shortened(repr(key))}")
            if key in seen:
                raise InvalidInput(f"line {key_node.start_mark.line + 1}: key {shortened(key)!r} stands twice")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(  # 1.1 takes an exponent only after a point and with a sign
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+\Z"), list("-+0123456789")
)


def load(text: str) -> Any:  # noqa: ANN401 - whatever YAML can say
    """What `text` says.

    Raises:
        InvalidInput: It is not YAML, or holds what is refused here; the line is named.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"it is not YAML: {shortened(error)}") from error
