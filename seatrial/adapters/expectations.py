"""The owner's own expectations, run by Great Expectations; an empty suite and an unknown expectation never pass."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any, Final

import polars as pl

from seatrial.errors import InvalidInput, shortened
from seatrial.verdict import Check

NAMED: Final = 5

os.environ["GX_ANALYTICS_ENABLED"] = "false"


def read(path: Path) -> list[dict[str, Any]]:
    """The expectations in a suite file.

    Raises:
        InvalidInput: No such file, no suite, or an empty one.
    """
    try:
        suite = json.loads(path.read_text(encoding="utf-8"))
        wanted = [{"type": str(e["type"]), "kwargs": dict(e["kwargs"])} for e in suite["expectations"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path.name} must be a Great Expectations suite with a list `expectations` of type and kwargs: "
            f"{shortened(repr(error))}"
        ) from error
    if not wanted:
        raise InvalidInput(f"{path.name} holds no expectation: an empty suite says nothing of the data")
    return wanted


def check(rows: pl.DataFrame, wanted: list[dict[str, Any]]) -> Check:
    """Run every expectation over all rows.

    Raises:
        InvalidInput: An expectation is unknown, or its arguments are not what it takes.
    """
    results = _validate(rows, wanted)
    failed = [_told(result) for result in results if result["success"] is not True]
    if len(results) != len(wanted):
        failed.append(f"{len(wanted) - len(results)} expectations gave no result")
    return Check(
        name="expectations",
        decision="fail" if failed else "pass",
        reason="; ".join(failed[:NAMED]) if failed else f"all {len(wanted)} expectations are met",
        evidence={"expectations": len(wanted), "failed": len(failed), "rows_seen": rows.height},
    )


def _validate(rows: pl.DataFrame, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Great Expectations uses deprecated parts of its own dependencies
        import great_expectations as gx  # noqa: PLC0415 - seconds to import; only where it is used
        from great_expectations.expectations.registry import get_expectation_impl  # noqa: PLC0415

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(globally=False)
        suite = gx.ExpectationSuite(name="suite")
        for expectation in wanted:
            try:
                suite.add_expectation(get_expectation_impl(expectation["type"])(**expectation["kwargs"]))
            except Exception as error:
                raise InvalidInput(
                    f"the expectation {expectation['type']!r} is unknown or wrongly written: {shortened(error)}"
                ) from error
        source = context.data_sources.add_pandas("rows").add_dataframe_asset("rows")
        batch = source.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": rows.to_pandas()})
        outcome = batch.validate(suite)
    return [result.to_json_dict() for result in outcome.results]


def _told(result: dict[str, Any]) -> str:
    """One failed expectation in words; an expectation that raised is a failed one."""
    config = result["expectation_config"]
    raised = result.get("exception_info") or {}
    seen = result.get("result") or {}
    arguments = {k: v for k, v in config["kwargs"].items() if k != "batch_id"}
    if seen.get("unexpected_count") is not None:
        examples = seen.get("partial_unexpected_list", [])[:3]
        what = f"{seen['unexpected_count']} of {seen['element_count']} values, like {examples}"
    elif "observed_value" in seen:
        what = f"observed {seen['observed_value']}"
    else:
        what = f"raised {shortened(raised)}"
    return shortened(f"{config['type']} {arguments}: {what}")
