"""What the real controller made of each case, and what the runner makes of it on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wire.argo import compare
from wire.argo.case import Case, all_cases
from wire.argo.replay import replay

from seatrial.errors import StepError

CASES = all_cases()
ALLOWED = compare.allowed()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_runner_does_what_argo_does(case: Case, tmp_path: Path) -> None:
    recorded = json.loads(case.recording.read_text(encoding="utf-8"))
    listed = ALLOWED.get(case.name, compare.Allowed("", {}))
    if listed.refused:
        with pytest.raises(StepError) as refusal:
            replay(case, tmp_path)
        assert listed.refused in str(refusal.value)
        return
    assert compare.differences(recorded, replay(case, tmp_path)) == listed.differences


def test_every_recording_and_every_difference_belongs_to_a_case() -> None:
    names = {case.name for case in CASES}
    assert {path.stem for path in CASES[0].recording.parent.glob("*.json")} == names
    assert ALLOWED.keys() <= names


def test_each_case_says_its_rule() -> None:
    assert [case.name for case in CASES if not case.rule.endswith(".")] == []
