"""What a drill concludes from the load's log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seatrial.app.commands._load import Seen, seen

Row = tuple[float, int, int | None, bool | None]
MARKED_FROM = 0.4


def answers(*rows: Row) -> list[dict[str, Any]]:
    return [{"t": t, "s": s, "v": v, "r": r, "m": t >= MARKED_FROM} for t, s, v, r in rows]


def read(tmp_path: Path, *rows: Row) -> Seen:
    log = tmp_path / "load.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in [*answers(*rows), {"summary": {}}]))
    return seen(log, champion=1)


def test_answers_are_counted_by_what_became_of_them(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        (0.1, 200, 1, True),
        (0.2, 200, 2, True),
        (0.3, 500, None, None),
        (0.4, 0, None, None),
        (0.5, 200, 2, False),
    )
    assert (found.requests, found.failed, found.lost, found.wrong) == (5, 1, 1, 1)
    assert found.early == 1
    assert found.answered_by == {"v1": 1, "v2": 1}


def test_the_way_back_lasts_from_the_first_bad_answer_until_the_champion_answers_everything(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        (1.0, 200, 1, True),
        (2.0, 500, None, None),
        (3.0, 200, 1, True),
        (4.0, 200, 2, True),
        (5.5, 200, 1, True),
    )
    assert found.first_bad_s == 2.0
    assert found.champion_only_s == 5.5
    assert found.back_in_s == 3.5
    assert found.after == 1


def test_a_log_out_of_order_is_read_by_its_times(tmp_path: Path) -> None:
    found = read(tmp_path, (2.0, 200, 1, True), (1.0, 500, None, None))
    assert (found.first_bad_s, found.champion_only_s) == (1.0, 2.0)


def test_a_champion_that_does_not_answer_last_never_took_over(tmp_path: Path) -> None:
    found = read(tmp_path, (1.0, 200, 1, True), (2.0, 500, None, None))
    assert found.champion_only_s is None
    assert found.back_in_s is None
    assert found.after == 0


def test_without_a_bad_answer_there_is_no_way_back_to_time(tmp_path: Path) -> None:
    found = read(tmp_path, (1.0, 200, 1, True), (2.0, 200, 1, True))
    assert found.back_in_s is None
    assert found.after == 2
