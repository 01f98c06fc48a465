"""A gate's report: one self-contained HTML page, no script, no network; the decision in words comes first."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from seatrial.verdict import Check, Verdict

_WORDS = {"pass": "passed", "fail": "failed", "inconclusive": "could not be decided"}
_ORDER = ("fail", "inconclusive", "pass")
_STYLE = """
:root{color-scheme:light dark;--ok:#1a7f37;--no:#cf222e;--wait:#9a6700;--line:#8884}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.4rem;margin:.2rem 0}.pass{color:var(--ok)}.fail{color:var(--no)}.inconclusive{color:var(--wait)}
table{border-collapse:collapse;width:100%;display:block;overflow-x:auto}td,th{padding:.35rem .6rem;text-align:left;
border-bottom:1px solid var(--line);vertical-align:top}code{font-size:.85em;overflow-wrap:anywhere}svg{max-width:100%}
small{opacity:.75}
"""


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
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1 class={verdict.decision}>{escape(title)}</h1><p>{escape(reason)}</p>",
        "<h2>Checks</h2><table><tr><th>Check<th>Decision<th>Why<th>Evidence</tr>",
        *(_row(check) for check in checks),
        *(f"<tr><td>{escape(name)}<td class=inconclusive>never ran<td><td></tr>" for name in _missing(verdict)),
        "</table>",
        *(f"<h2>{escape(heading)}</h2>{html}" for heading, html in sections),
        "<h2>What was judged</h2><table>",
        *(f"<tr><td>{escape(name)}<td><code>{digest}</code></tr>" for name, digest in sorted(verdict.judged.items())),
        f"</table><p><small>release {escape(verdict.release_id)}, policy {verdict.policy}</small></p></html>",
    ]
    return "\n".join(parts)


def _missing(verdict: Verdict) -> list[str]:
    return sorted(set(verdict.required) - {check.name for check in verdict.checks})


def _row(check: Check) -> str:
    facts = ", ".join(f"{escape(name)} {escape(_shown(value))}" for name, value in check.evidence.items())
    return (
        f"<tr><td>{escape(check.name)}<td class={check.decision}>{check.decision}"
        f"<td>{escape(check.reason)}<td><code>{facts}</code></tr>"
    )


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
