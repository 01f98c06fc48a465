"""A gate's report: one self-contained HTML page, no script, no network; the decision in words comes first."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from seatrial import digests
from seatrial.verdict import Check, Fact, Verdict

_WORDS = {"pass": "passed", "fail": "failed", "inconclusive": "could not be decided"}
_ORDER = ("fail", "inconclusive", "pass")
STYLE: Final = """
:root{color-scheme:light dark;--ok:#1a7f37;--no:#cf222e;--wait:#9a6700;--line:#8884}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1.15rem;margin:1.6rem 0 .4rem}
.pass{color:var(--ok)}.fail{color:var(--no)}.inconclusive{color:var(--wait)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.35rem .9rem .35rem 0;text-align:left;
border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:normal}code{font-size:.85em;overflow-wrap:anywhere}
.wide{overflow-x:auto}svg{max-width:100%;height:auto}small{opacity:.75}
.facts{font-size:.9em;opacity:.8}.facts span{white-space:nowrap}
@media(max-width:40rem){.checks tr:first-child{display:none}.checks tr{display:block;padding:.5rem 0;
border-bottom:1px solid var(--line)}.checks td{display:block;border:0;padding:.1rem 0}
.checks td:first-child{font-weight:600}.checks td:empty{display:none}}
"""
"""Of every page of ours."""


def page(verdict: Verdict, *, sections: Iterable[tuple[str, str]] = ()) -> str:
    """The report of `verdict`.

    Args:
        verdict: What was decided.
        sections: Title and HTML (inline SVG, tables) of what a person would like to see beside the checks.
    """
    title = f"{verdict.model_name} v{verdict.version}: {verdict.gate} {_WORDS[verdict.decision]}"
    reason = verdict.reasons[0] if verdict.reasons else f"all {len(verdict.checks)} checks passed"
    checks = sorted(verdict.checks, key=lambda check: _ORDER.index(check.decision))
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width,initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f"<h1 class={verdict.decision}>{escape(title)}</h1><p>{escape(reason)}</p>",
        "<h2>Checks</h2><table class=checks><tr><th>Check<th>Decision<th>Why<th>Evidence</tr>",
        *(_row(check) for check in checks),
        *(f"<tr><td>{escape(name)}<td class=inconclusive>never ran<td><td></tr>" for name in _missing(verdict)),
        "</table>",
        *(f"<h2>{escape(heading)}</h2><div class=wide>{html}</div>" for heading, html in sections),
        "<h2>What was judged</h2><table>",
        *(f"<tr><td>{escape(name)}<td><code>{digest}</code></tr>" for name, digest in sorted(verdict.judged.items())),
        f"</table><p><small>release {escape(verdict.release_id)}, policy {verdict.policy}</small></p></html>",
    ]
    return "\n".join(parts)


def _missing(verdict: Verdict) -> list[str]:
    return sorted(set(verdict.required) - {check.name for check in verdict.checks})


def _row(check: Check) -> str:
    facts = ", ".join(f"<span>{escape(_in_words(name, value))}</span>" for name, value in check.evidence.items())
    return (
        f"<tr><td>{escape(check.name)}<td class={check.decision}>{check.decision}"
        f"<td>{escape(check.reason)}<td class=facts>{facts}</tr>"
    )


def _in_words(name: str, value: Fact) -> str:
    """A fact for people: four digits are enough to read, twelve to tell digests apart; the verdict holds all."""
    text = str(value)
    if isinstance(value, float):
        text = f"{value:.4g}"
    elif text.startswith("sha256:"):
        text = digests.short(text)
    return f"{name.replace('_', ' ')}: {text}"
