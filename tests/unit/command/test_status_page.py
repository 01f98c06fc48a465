"""The status page says what was found, and nothing that was not."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from seatrial.app.views.status import page

MODEL: dict[str, Any] = {
    "model": "cart_abandonment",
    "route_known": True,
    "ledger": {"champion": 1},
    "champion": 1,
    "previous": None,
    "candidate": None,
    "weights": {"1": 100},
    "changed_by_hand": False,
    "owner": "alice",
    "last_change": "rollback",
    "reason": "complaints [red]",
    "watched_until": None,
    "answers": {"v1": 9, "status 503": 1},
    "services": [{"name": "cart-abandonment-v1", "ready": "False", "why": "MinimumReplicasUnavailable"}],
    "outcomes": [{"outcome": "refused", "version": 2, "at": "2026-01-01T12:30:00+00:00", "reasons": ["unique_ids: 3"]}],
    "trouble": [],
}
PART = {"name": "gateway", "state": "running", "pid": 7, "port": 8080, "note": ""}


def shown(**facts: Any) -> str:
    told = io.StringIO()
    sandbox = {"sandbox": "up", "models": [MODEL | facts], "parts": [PART]}
    Console(file=told, width=200).print(page(sandbox))
    return told.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "champion     v1",
        "v1 9 of 10, status 503 1 of 10",
        "rollback by alice: complaints [red]",
        "MinimumReplicasUnavailable",
        "unique_ids: 3",
        "2026-01-01 12:30",
        "8080",
    ],
)
def test_what_was_found_is_shown(text: str) -> None:
    assert text in shown()


def test_a_candidate_is_shown_with_who_watches_it() -> None:
    until = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
    assert "v2 (watched until 12:30:00 UTC)" in shown(candidate=2, watched_until=until)
    assert "v2 (nobody watches)" in shown(candidate=2)


def test_a_route_changed_by_hand_stands_out() -> None:
    assert "CHANGED BY HAND" in shown(changed_by_hand=True)
    assert "CHANGED BY HAND" not in shown()


def test_what_could_not_be_found_out_is_said() -> None:
    assert "! the store is away" in shown(trouble=["the store is away"])


def test_a_route_that_cannot_be_read_is_not_taken_for_nobody() -> None:
    page_of = shown(route_known=False, trouble=["the API is away"])
    assert "cannot be read: who is to serve is not known" in page_of
    assert "v1, by the ledger" in page_of
    assert "nobody" not in page_of


def test_a_sandbox_that_is_down_serves_nobody() -> None:
    told = io.StringIO()
    Console(file=told, width=200).print(page({"sandbox": "down", "models": [], "parts": []}))
    assert "the sandbox is down: nobody serves" in told.getvalue()
