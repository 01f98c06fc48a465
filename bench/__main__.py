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
    slowest = max(stage.followed_s for stage in shifted.stages)
    return [
        "# Benchmarks",
        "",
        (
            f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {platform.system()} "
            f"{platform.machine()}, Python {platform.python_version()}. Compare ratios within one run, not times between "
            "machines."
        ),
        "",
        "## The runner's own cost",
        "",
        (
            f"A chain of {chain.STEPS} steps that do nothing (`python -c pass`), through the runner and as the same bare "
            f"processes one after the other; medians of {chain.RUNS} runs, in turn."
        ),
        "",
        "| | whole chain | per step |",
        "| --- | --- | --- |",
        _cost("bare processes", cost.bare_s),
        _cost("through the runner", cost.runner_s),
        f"| **more, per step** | | **{cost.more_ms:.1f} ms** (at most 50) |",
        "",
        "## Weight change → traffic follows",
        "",
        (
            f"Two versions of `{fresh.MODEL}` behind the sandbox's gateway, {shifting.PER_S} requests a second all the "
            f"while. {shifted.requests} requests, **{shifted.failures} failures** (at most 0); slowest change "
            f"**{slowest:.2f} s** (at most 1)."
        ),
        "",
        "| champion's weight | requests | traffic followed after | champion's share, from 1 s after the change |",
        "| --- | --- | --- | --- |",
        *(
            f"| {stage.share} % | {stage.requests} | {stage.followed_s:.2f} s | {stage.seen_share:.1f} %"
            f"{'' if stage.right else ' (not as it should)'} |"
            for stage in shifted.stages
        ),
        "",
        (
            "Followed: from asking for the change to the last answer that only the old weights explain, or, where none is "
            "told apart so, to the first answer of the version that gained."
        ),
        "",
        "## `make run`",
        "",
        (
            f"`make run MODEL_NAME={fresh.MODEL}` in a fresh clone with uv's and pip's caches empty; wall "
            "time of the whole command."
        ),
        "",
        "| | seconds | last line |",
        "| --- | --- | --- |",
        *(f"| {run.what} | {run.seconds:.0f} | `{run.last_line}` |" for run in runs),
    ]


def _cost(what: str, seconds: float) -> str:
    return f"| {what} | {1000 * seconds:.0f} ms | {1000 * seconds / chain.STEPS:.1f} ms |"


if __name__ == "__main__":
    main()
