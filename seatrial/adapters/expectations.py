"""The owner's own expectations, run by Great Expectations; what looked at no value, or did not run, never passes."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from seatrial.errors import InvalidInput, shortened
from seatrial.verdict import Check

NAMED: Final = 5
CONDITIONS: Final = frozenset({"row_condition", "condition_parser"})
"""Arguments that are refused: pandas evaluates them as code, and the signing key is in this process."""
OURS: Final = frozenset({"result_format", "catch_exceptions", "batch_id"})
"""Arguments that say how to report, not what to expect; left out."""
NULL_IS_MEANT: Final = frozenset({"expect_column_values_to_be_null", "expect_column_to_exist"})
"""What a column without any value can meet."""

os.environ["GX_ANALYTICS_ENABLED"] = "false"


def read(path: Path) -> list[dict[str, Any]]:
    """The expectations in a suite file.

    Raises:
        InvalidInput: No such file, no suite, an empty one, or a condition on rows.
    """
    try:
        suite = json.loads(_text(path))
        wanted: list[dict[str, Any]] = [
            {"type": str(e["type"]), "kwargs": dict(e["kwargs"])} for e in suite["expectations"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(
            f"{path.name} must be a Great Expectations suite with a list `expectations` of type and kwargs: "
            f"{shortened(repr(error))}"
        ) from error
    if not wanted:
        raise InvalidInput(f"{path.name} holds no expectation: an empty suite says nothing of the data")
    for expectation in wanted:
        if CONDITIONS & expectation["kwargs"].keys():
            raise InvalidInput(
                f"{path.name}: {expectation['type']} has a row_condition, which is code and could leave no row to look "
                "at; make a column of it in the data"
            )
    return wanted


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InvalidInput(
            f"the model has no {path.name}: write a Great Expectations suite, or name its file under data.expectations"
        ) from error
    except OSError as error:
        raise InvalidInput(f"{path.name} cannot be read: {shortened(error)}") from error
    if not text.strip():
        raise InvalidInput(f"{path.name} is empty; a Great Expectations suite is wanted")
    return text


def check(rows: pl.DataFrame, wanted: list[dict[str, Any]]) -> Check:
    """Run every expectation over all rows; each must hold, and must have looked at a value.

    Raises:
        InvalidInput: An expectation is unknown, or its arguments are not what it takes.
    """
    plain = [{"type": e["type"], "kwargs": {k: v for k, v in e["kwargs"].items() if k not in OURS}} for e in wanted]
    results = _validate(rows, plain)
    failed = [fault for result in results if (fault := _fault(result, rows)) is not None]
    if len(results) != len(wanted):
        failed.append(f"{len(wanted) - len(results)} expectations gave no result")
    return Check(
        name="expectations",
        decision="fail" if failed or not wanted else "pass",
        reason="; ".join(failed[:NAMED]) if failed else f"all {len(wanted)} expectations are met",
        evidence={"expectations": len(wanted), "failed": len(failed), "rows_seen": rows.height},
    )


def _validate(rows: pl.DataFrame, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Great Expectations uses deprecated parts of its own dependencies
        import great_expectations as gx  # noqa: PLC0415 - seconds to import; only where it is used
        from great_expectations.expectations.registry import get_expectation_impl  # noqa: PLC0415

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(
            globally=False, metric_calculations=False
        )
        suite = gx.ExpectationSuite(name="suite")
        for expectation in wanted:
            try:
                suite.add_expectation(get_expectation_impl(expectation["type"])(**expectation["kwargs"]))
            except Exception as error:
                raise InvalidInput(
                    f"the expectation {expectation['type']!r} is unknown or wrongly written: {shortened(error)}"
                ) from error
        if len(suite.expectations) != len(wanted):
            raise InvalidInput(f"{len(wanted) - len(suite.expectations)} expectations stand twice in the suite")
        source = context.data_sources.add_pandas("rows").add_dataframe_asset("rows")
        batch = source.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": rows.to_pandas()})
        try:
            outcome = batch.validate(suite)
        except Exception as error:  # such as a $PARAMETER without a value
            raise InvalidInput(f"the expectations cannot be run: {shortened(error)}") from error
    return [_plain(result) for result in outcome.results]


def _plain(result: Any) -> dict[str, Any]:  # noqa: ANN401 - Great Expectations has no types
    """What a result says; some expectations say so with a numpy.bool, which is not `True`."""
    return {**result.to_json_dict(), "success": bool(result.success)}


def _fault(result: Mapping[str, Any], rows: pl.DataFrame) -> str | None:
    """Why an expectation is not met, in words; None: it is. One that raised, or that saw no value, is not met."""
    config, seen = result["expectation_config"], result.get("result") or {}
    arguments = {k: v for k, v in config["kwargs"].items() if k != "batch_id"}
    raised = _raised(result.get("exception_info") or {})
    foreign, empty = _columns(arguments, rows)
    if foreign:
        what = f"the contract declares no column {foreign[0]!r}"
    elif raised is not None:
        what = f"could not be judged: {raised}"
    elif not rows.height:
        what = "there is no row to look at"
    elif empty and config["type"] not in NULL_IS_MEANT:
        what = f"every value of {empty[0]!r} is missing: nothing was looked at"
    elif result["success"]:
        return None
    elif seen.get("unexpected_count") is not None:
        of_all, missing = seen["element_count"], seen.get("missing_count") or 0
        what = (
            f"{seen['unexpected_count']} of {of_all} values ({missing} missing), "
            f"like {seen.get('partial_unexpected_list', [])[:3]}"
        )
    else:
        what = f"observed {seen.get('observed_value')}"
    return shortened(f"{config['type']} {arguments}: {what}")


def _columns(arguments: Mapping[str, Any], rows: pl.DataFrame) -> tuple[list[str], list[str]]:
    """The columns that an expectation names: those that are not there, and those without any value."""
    named = [str(arguments[name]) for name in ("column", "column_A", "column_B") if name in arguments]
    named += [str(name) for name in arguments.get("column_list") or ()]
    foreign = [name for name in named if name not in rows.columns]
    return foreign, [name for name in named if name not in foreign and rows[name].null_count() == rows.height]


def _raised(info: Mapping[str, Any]) -> str | None:
    """The message of what an expectation raised: told at the top, or once per metric."""
    for one in (info, *(part for part in info.values() if isinstance(part, dict))):
        if one.get("raised_exception"):
            return shortened(str(one.get("exception_message")).strip())
    return None
