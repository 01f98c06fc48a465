"""The drill's load: a process of its own, and what its log says afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from seatrial.errors import StepError, shortened

RATE: Final = 200
"""Requests a second."""
LASTS_S: Final = 1200
"""It ends by itself after that, whatever becomes of the drill."""
ENDS_WITHIN_S: Final = 20


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the load saw, from its log alone."""

    requests: int
    seconds: float
    lost: int
    """Got no answer at all."""
    wrong: int
    """Got an answer that is not the right one."""
    failed: int
    """Were refused, with a status."""
    early: int
    """Of the bad ones, those without the marker: nothing gives them a reason to fail."""
    answered_by: dict[str, int]
    """Version → right answers."""
    first_bad_s: float | None
    """Seconds since the load's start; None: nothing bad happened."""
    champion_only_s: float | None
    """From then on every answer was right, and the champion's; None: never."""
    after: int
    """Requests from then on."""

    @property
    def back_in_s(self) -> float | None:
        """From the first bad answer until the champion answered everything."""
        if self.first_bad_s is None or self.champion_only_s is None:
            return None
        return self.champion_only_s - self.first_bad_s


@contextmanager
def load(
    *, gateway: str, model: str, clean: Path, marked: Path | None, marker: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The load runs inside the block, and is over after it."""
    command = [sys.executable, "-m", "seatrial.app.load", "--gateway", gateway, "--model", model]
    command += ["--requests", str(clean), "--log", str(log), "--rate", str(RATE), "--seconds", str(LASTS_S)]
    command += ["--marked-requests", str(marked), "--marker-file", str(marker)] if marked else []
    with log.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise StepError(f"the load failed ({process.returncode}): {shortened(log.with_suffix('.err').read_text())}")


def seen(log: Path, champion: int) -> Seen:
    """What the log says.

    Args:
        log: One JSON object a line: t, s, v, r, m; a summary last.
        champion: Who is to answer everything in the end.
    """
    answers = [fact for line in log.read_bytes().splitlines() if "t" in (fact := json.loads(line))]
    answers.sort(key=lambda fact: float(fact["t"]))
    bad = [fact for fact in answers if fact["r"] is not True]
    since = _champion_only(answers, champion)
    return Seen(
        requests=len(answers),
        seconds=round(float(answers[-1]["t"]), 1) if answers else 0.0,
        lost=sum(fact["s"] == 0 for fact in answers),
        wrong=sum(fact["r"] is False for fact in answers),
        failed=sum(fact["s"] != 0 and fact["r"] is None for fact in answers),
        early=sum(fact["m"] is not True for fact in bad),
        answered_by=dict(sorted(Counter(f"v{fact['v']}" for fact in answers if fact["r"] is True).items())),
        first_bad_s=float(bad[0]["t"]) if bad else None,
        champion_only_s=float(answers[since]["t"]) if since < len(answers) else None,
        after=len(answers) - since,
    )


def _champion_only(answers: Sequence[dict[str, Any]], champion: int) -> int:
    """The place from which on every answer is right and the champion's."""
    since = len(answers)
    while since > 0 and answers[since - 1]["r"] is True and answers[since - 1]["v"] == champion:
        since -= 1
    return since
