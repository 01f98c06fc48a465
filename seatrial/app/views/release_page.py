"""A release on one page: self-contained HTML, no script, no network; how it ended, and why, come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from seatrial import report
from seatrial.app.views.outcome import Ended
from seatrial.app.views.safe_html import fit
from seatrial.app.views.steps import SYMBOLS, Line
from seatrial.verdict import Verdict

_CLASSES: Final = {"promoted": "pass", "unchanged": "pass", "superseded": "inconclusive", "running": "inconclusive"}
"""Outcome → its colour; any other is that of a failure."""
_PHASES: Final = {"Succeeded": "pass", "Failed": "fail", "Error": "fail", "Running": "inconclusive"}
_WORDS: Final = {"promoted": "every gate passed", "unchanged": "source, spec, data and steps are the champion's"}
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
.steps{list-style:none;padding:0;margin:0}.steps li{padding:.25rem 0;border-bottom:1px solid var(--line)}
.steps .name{display:flex;gap:.5rem;justify-content:space-between}.steps .group{font-weight:600}
.track{display:block;height:.35rem;background:var(--line);border-radius:.2rem}
.bar{display:block;height:100%;min-width:2px;max-width:100%;border-radius:.2rem;background:currentColor}
details{border-bottom:1px solid var(--line);padding:.5rem 0}summary{cursor:pointer;font-weight:600}
h3{font-size:1.05rem;margin:.8rem 0 .2rem}h4{margin:1rem 0 .3rem}
.facts-of td:first-child{white-space:nowrap}td code{overflow-wrap:anywhere}
"""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a gate left."""

    name: str
    """Of its step."""
    verdict: Verdict | None
    """None: it left none that can be read; `missing` says why."""
    page: str = ""
    """Its report, as the gate wrote it; empty: it wrote none, or none can be read."""
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Told:
    """All that is known of a release."""

    ended: Ended
    release_id: str
    created: str
    asked: Mapping[str, str]
    """The run's parameters."""
    steps: Sequence[Line]
    gates: Sequence[Gate]
    release: Mapping[str, Any]
    """What resolve_release found out; empty: it did not come to its end."""

    def facts(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            **self.ended.facts(),
            "release_id": self.release_id,
            "created": self.created,
            "asked": dict(self.asked),
            "steps": [
                {"name": step.name, "phase": step.phase or "not begun", "seconds": step.seconds(), "group": step.group}
                for step in self.steps
            ],
            "gates": [
                {
                    "step": gate.name,
                    "missing": gate.missing,
                    "verdict": None if gate.verdict is None else gate.verdict.model_dump(mode="json"),
                }
                for gate in self.gates
            ],
            "release": dict(self.release),
        }


def page(told: Told) -> str:
    """The page."""
    ended = told.ended
    version = f" v{ended.version}" if ended.version else ""
    title = f"{ended.outcome} {ended.model}{version}"
    kind = _CLASSES.get(ended.outcome, "fail")
    reasons = ended.reasons or (_WORDS.get(ended.outcome, "no step says why"),)
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(title)}</title><style>{report.STYLE}{_STYLE}</style></head><body>",
            f'<h1 class="{kind}">{escape(title)}</h1>',
            *(f"<p>{escape(reason)}</p>" for reason in reasons),
            f"<p><small>{_took(ended.seconds)}begun {escape(told.created)}</small></p>",
            "<h2>Steps</h2>",
            *_steps(told.steps),
            "<h2>Gates</h2>",
            *(_gate(gate) for gate in told.gates),
            "" if told.gates else "<p>No gate was reached.</p>",
            "<h2>Version and digests</h2>",
            _table(_facts(told)),
            "</body></html>\n",
        )
    )


def _steps(steps: Sequence[Line]) -> Iterator[str]:
    """Every step in its order: how it went, how long, and when in the whole."""
    ran = [step for step in steps if step.started is not None and step.ran]
    first = min((step.started or 0.0 for step in ran), default=0.0)
    whole = max((_end(step) for step in ran), default=first) - first or 1.0
    yield '<ol class="steps">'
    for step in steps:
        seconds = (_end(step) - step.started) if step.started is not None and step.ran else None
        kind = _PHASES.get(step.phase, "")
        name = f"{SYMBOLS.get(step.phase, '·')} {step.name}"
        time = f"{seconds:.1f} s" if seconds is not None else (step.phase or "not begun").lower()
        yield (
            f'<li style="padding-left:{step.depth}rem"><span class="name{" group" if step.group else ""}">'
            f'<span class="{kind}">{escape(name)}</span><span>{escape(time)}</span></span>'
        )
        if seconds is not None and step.started is not None:
            left, width = 100 * (step.started - first) / whole, 100 * seconds / whole
            yield f'<span class="track {kind}"><span class="bar" style="margin-left:{left:.1f}%;width:{width:.1f}%">'
            yield "</span></span>"
        if step.message and step.phase in {"Failed", "Error", "Pending"}:
            yield f"<small>{escape(step.message)}</small>"
        yield "</li>"
    yield "</ol>"


def _end(step: Line) -> float:
    """When it ended; of one that goes on, when it began: a page that is read later has no now."""
    return step.ended or step.started or 0.0


def _gate(gate: Gate) -> str:
    """One gate; open from the start when it did not pass."""
    if gate.verdict is None:
        return f"<details open><summary>{escape(gate.name)}</summary><p>{escape(gate.missing)}</p></details>"
    decision = gate.verdict.decision
    body = fit(gate.page or report.page(gate.verdict))
    return (
        f"<details{'' if decision == 'pass' else ' open'}><summary>{escape(gate.name)}: "
        f'<span class="{decision}">{decision}</span></summary>{body}</details>'
    )


def _facts(told: Told) -> Iterator[tuple[str, str]]:
    release, ended = told.release, told.ended
    champion = release.get("champion") or {}
    yield from (
        ("version", f"v{ended.version}" if ended.version else ""),
        ("champion before", f"v{champion['version']}" if champion else ""),
        ("bundle", ended.bundle or ""),
        ("image", ended.image or ""),
        ("run", ended.run),
        ("release id", told.release_id),
    )
    known = ("revision", "data_uri", "reason", "source_digest", "spec_digest", "data_digest", "images_digest")
    yield from ((name.replace("_", " "), str(release.get(name) or "")) for name in (*known, "release_digest"))
    if not release:
        yield from ((name, value) for name, value in told.asked.items())


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><td>{escape(name)}</td><td><code>{escape(value)}</code></td></tr>" for name, value in rows if value)
    return f'<table class="facts-of">{"".join(cells)}</table>'


def _took(seconds: float) -> str:
    """Nothing of a run that is not over."""
    return f"{seconds:.0f} s, " if seconds else ""
