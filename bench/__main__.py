"""Measure everything and write docs/benchmarks.md; about five minutes."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime

from bench import chain, fresh, shifting


def main() -> None:
    """Measure, write, and say where."""
    print("the runner's own cost")
    cost = chain.measure()
    with fresh.clone() as folder:
        print("make run in a fresh clone")
        runs = fresh.measure(folder)
        print("weights change under traffic")
        shifted = shifting.measure(folder / ".seatrial", fresh.MODEL)
    target = fresh.ROOT / "docs" / "benchmarks.md"
    target.write_text("\n".join(page(cost, shifted, runs)) + "\n", encoding="utf-8")
    print(target.read_text(encoding="utf-8"))


def page(cost: chain.Chain, shifted: shifting.Shifting, runs: Iterable[fresh.Run]) -> list[str]:
    """The document, line by line."""
    return [*_head(), *_chain(cost), *_shifting(shifted), *_fresh(runs)]


def _head() -> list[str]:
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return [
        "# Benchmarks",
        "",
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {machine}. Ratios within one run count, not times.",
    ]


def _chain(cost: chain.Chain) -> list[str]:
    how = f"the same bare processes one after the other; medians of {chain.RUNS} runs, in turn."
    return [
        "",
        "## The runner's own cost",
        "",
        f"A chain of {chain.STEPS} steps that do nothing (`python -c pass`), through the runner and as {how}",
        "",
        "| | whole chain | per step |",
        "| --- | --- | --- |",
        _cost("bare processes", cost.bare_s),
        _cost("through the runner", cost.runner_s),
        f"| **more, per step** | | **{cost.more_ms:.1f} ms** (at most 50) |",
    ]


def _cost(what: str, seconds: float) -> str:
    return f"| {what} | {1000 * seconds:.0f} ms | {1000 * seconds / chain.STEPS:.1f} ms |"


def _shifting(shifted: shifting.Shifting) -> list[str]:
    slowest = max(stage.followed_s for stage in shifted.stages)
    found = f"{shifted.requests} requests, **{shifted.failures} failures** (at most 0)"
    return [
        "",
        "## Weight change → traffic follows",
        "",
        f"Two versions of `{fresh.MODEL}` behind the sandbox's gateway, {shifting.PER_S} requests a second.",
        f"{found}; slowest change **{slowest:.2f} s** (at most 1).",
        "",
        "| champion's weight | requests | traffic followed after | champion's share, from 1 s after the change |",
        "| --- | --- | --- | --- |",
        *(
            f"| {stage.share} % | {stage.requests} | {stage.followed_s:.2f} s | {stage.seen_share:.1f} %"
            f"{'' if stage.right else ' (not as it should)'} |"
            for stage in shifted.stages
        ),
        "",
        "Followed: from asking for the change to the last answer that only the old weights explain, or, where none is",
        "told apart so, to the first answer of the version that gained.",
    ]


def _fresh(runs: Iterable[fresh.Run]) -> list[str]:
    return [
        "",
        "## `make run`",
        "",
        f"`make run MODEL_NAME={fresh.MODEL}` in a fresh clone, uv's and pip's caches empty at first; wall time of the",
        "whole command.",
        "",
        "| | seconds | last line |",
        "| --- | --- | --- |",
        *(f"| {run.what} | {run.seconds:.0f} | `{run.last_line}` |" for run in runs),
    ]


if __name__ == "__main__":
    main()
