"""HTML that somebody else wrote, made fit to stand in a page of ours: known tags, no script, no address, all closed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from html.parser import HTMLParser
from typing import Final

_TEXT: Final = frozenset(
    {"h3", "h4", "p", "div", "span", "small", "code", "pre", "b", "strong", "em", "ul", "ol", "li"}
    | {"table", "tr", "td", "th"}
)
_PICTURE: Final = frozenset({"svg", "g", "path", "rect", "circle", "line", "polyline", "polygon", "text", "tspan"})
_SAME_AS: Final = {"h1": "h3", "h2": "h4"}
"""The page has headings of its own above these."""
_GONE: Final = frozenset(["script", "style", "iframe", "object", "template"])
"""Left out with all that is in them; of any other unknown tag the text stays."""
_ATTRIBUTES: Final = {
    name.lower(): name
    for name in (
        *("class", "role", "aria-label", "viewBox", "width", "height", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy"),
        *("r", "rx", "ry", "d", "points", "transform", "fill", "fill-opacity", "stroke", "stroke-width"),
        *("stroke-opacity", "stroke-dasharray", "stroke-linecap", "font-size", "font-family", "font-weight"),
        *("text-anchor", "colspan", "rowspan"),
    )
}
_ADDRESSES: Final = ("url(", "//", "javascript:", "data:")
_CLOSES: Final = {
    "td": {"td", "th", "p", "span"},
    "th": {"td", "th", "p", "span"},
    "tr": {"td", "th", "tr", "p", "span"},
    "li": {"li", "p"},
}
"""Tag → the open ones that end where it begins. Source: HTML, "optional tags"."""


def fit(html: str) -> str:
    """The body of `html`, of which a browser fetches nothing and runs nothing; every tag that it opens it closes."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return "".join((*reader.parts, *reader.ends()))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._open: list[str] = []
        self._gone = ""
        """The tag whose content is left out now."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = _SAME_AS.get(tag, tag)
        if self._gone:
            return
        if name in _GONE or (name == "title" and "svg" not in self._open):
            self._gone = name
            return
        if name not in _TEXT | _PICTURE | {"title"}:
            return
        while self._open and self._open[-1] in _CLOSES.get(name, ()):
            self.parts.append(f"</{self._open.pop()}>")
        self._open.append(name)
        self.parts.append(f"<{name}{''.join(_kept(attrs))}>")

    def handle_endtag(self, tag: str) -> None:
        name = _SAME_AS.get(tag, tag)
        if self._gone:
            self._gone = "" if name == self._gone else self._gone
            return
        if name not in self._open:
            return
        closed = ""
        while closed != name:
            closed = self._open.pop()
            self.parts.append(f"</{closed}>")

    def handle_data(self, data: str) -> None:
        if not self._gone:
            self.parts.append(escape(data))

    def ends(self) -> Iterable[str]:
        """What is still open, closed."""
        return [f"</{name}>" for name in reversed(self._open)]


def _kept(attributes: Iterable[tuple[str, str | None]]) -> Iterable[str]:
    seen = set()
    for name, value in attributes:
        address = any(sign in (value or "").lower().replace(" ", "") for sign in _ADDRESSES)
        if name in _ATTRIBUTES and name not in seen and not (address and name != "aria-label"):
            seen.add(name)
            yield f' {_ATTRIBUTES[name]}="{escape(value or "")}"'
