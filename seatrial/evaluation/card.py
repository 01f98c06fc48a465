"""The model card: what the model is, on what it was judged, with which result; Markdown.

Source: Mitchell et al., Model Cards for Model Reporting, 2019, cut to what a release knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.release import Release
from seatrial.spec import Spec
from seatrial.verdict import Verdict

Scores = Mapping[str, Mapping[str, float]]
"""Metric → candidate, champion → value."""


def card(spec: Spec, release: Release, verdict: Verdict, scores: Scores) -> str:
    """The card of the version that `verdict` is about."""
    champion = f"version {release.champion.version}" if release.champion else "no champion: the first release"
    parts = [
        f"# {spec.model} version {release.version}",
        _line(spec.description) or "The owner wrote no description.",
        _bullets(
            f"owner: {spec.owner}",
            f"source: `{release.revision}`, {release.source_digest}",
            f"data: {release.data_digest}",
            f"release: `{release.release_id}`",
            f"compared with: {champion}",
        ),
        f"## Judged: {verdict.decision}",
        _bullets(*verdict.reasons) or "Every check passed.",
        _table(("check", "decision", "why"), [(c.name, c.decision, c.reason) for c in verdict.checks]),
        "## On the held-out rows",
        _metrics(scores) if scores else "No metric could be measured.",
        "## Takes and gives",
        _takes_and_gives(spec),
        "## Digests",
        _table(("what", "digest"), sorted(verdict.judged.items())),
    ]
    return "\n\n".join(parts) + "\n"


def _takes_and_gives(spec: Spec) -> str:
    features = [(c.name, c.dtype, "yes" if c.nullable else "no") for c in spec.data.features]
    output = spec.serving.output
    return (
        _table(("feature", "type", "may be missing"), features)
        + f"\n\nOutput `{output.name}`: float32, {output.width} wide; the last column is the probability that "
        f"`{spec.data.label}` is 1."
    )


def _metrics(scores: Scores) -> str:
    columns = sorted({who for values in scores.values() for who in values})
    rows = [(metric, *(f"{values[who]:.6g}" for who in columns)) for metric, values in scores.items()]
    return _table(("metric", *columns), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(_line(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _bullets(*lines: str) -> str:
    return "\n".join(f"- {_line(line)}" for line in lines)
