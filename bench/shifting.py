"""Weight change → traffic follows: a real gateway, two real versions, requests all the while."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seatrial.adapters.replay import ask, paced, session_of
from seatrial.app import sandbox
from seatrial.app.commands._ports import Ports, connect
from seatrial.route import RouteState
from seatrial.triton import requests

SHARES: Final = (100, 90, 50, 0, 100)
"""Percent for the champion, one after the other; the first is how it stands at the start."""
STAGE_S: Final = 6.0
PER_S: Final = 400
SETTLED_S: Final = 1.0
"""After so long the share must be right."""
SIGMAS: Final = 4.0


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What followed one change."""

    share: int
    """Percent for the champion."""
    requests: int
    followed_s: float
    """Seconds from asking for the change to the last answer that the old weights explain and the new do not; or, where
    both do, to the first answer of the version that gained."""
    seen_share: float
    """Percent that the champion answered, from `SETTLED_S` after the change to the next one."""
    right: bool
    """Whether that is within `SIGMAS` standard deviations of the weight."""


@dataclass(frozen=True, kw_only=True)
class Shifting:
    """The whole measurement."""

    stages: tuple[Stage, ...]
    requests: int
    failures: int


@dataclass
class _Traffic:
    """Requests at a fixed rate from a thread of its own: (asked at, answered at, version or None)."""

    url: str
    bodies: Sequence[bytes]
    answers: list[tuple[float, float, int | None]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        async with session_of(16) as session:

            async def send() -> None:
                asked = time.monotonic()
                answer = await ask(session, self.url, self.bodies[len(self.answers) % len(self.bodies)], {})
                version = answer.version if answer.status == 200 else None
                self.answers.append((asked, time.monotonic(), version))

            await paced(PER_S, send, stop=self.over.is_set, under_way=64, patience_s=5.0)


def measure(home: Path, model: str) -> Shifting:
    """Change the weights between champion and previous version under traffic, and put them back."""
    found = sandbox.find(home)
    assert found is not None, "the sandbox must be up"
    ports = connect(found)
    state = ports.router.read(model)
    assert state.champion is not None, "a champion must serve"
    assert state.previous is not None, "a version before it must be kept"
    bodies = [requests.body(example) for example in requests.parse(ports.paper(model, state.champion, "replay.jsonl"))]
    traffic = _Traffic(f"{found.gateway_url}/v2/models/{model}/infer", bodies)
    thread = threading.Thread(target=traffic.run)
    _share(ports, state, 100)
    time.sleep(2)
    thread.start()
    moments = [time.monotonic()]
    for share in SHARES[1:]:
        time.sleep(STAGE_S)
        moments.append(time.monotonic())
        _share(ports, state, share)
    time.sleep(STAGE_S)
    traffic.over.set()
    thread.join()
    _restore(ports, state)
    return _result(traffic.answers, moments, state.champion)


def _share(ports: Ports, before: RouteState, share: int) -> None:
    assert before.champion is not None
    assert before.previous is not None
    weights = {before.champion: share, before.previous: 100 - share}

    def wanted(state: RouteState) -> RouteState:
        return state.but(candidate=before.previous, previous=None, weights=weights, owner="bench")

    ports.router.change(before.model_name, wanted, action="shift", reason="benchmark")


def _restore(ports: Ports, before: RouteState) -> None:
    def wanted(state: RouteState) -> RouteState:
        return before.but(resource_version=state.resource_version, sequence=state.sequence)

    ports.router.change(before.model_name, wanted, action="go_back", reason="benchmark")


def _result(answers: list[tuple[float, float, int | None]], moments: list[float], champion: int) -> Shifting:
    ends = [*moments[1:], math.inf]
    stages = []
    for i in range(1, len(SHARES)):
        inside = [one for one in answers if moments[i] <= one[0] < ends[i]]
        settled = [version == champion for asked, _, version in inside if asked >= moments[i] + SETTLED_S]
        seen = 100 * sum(settled) / len(settled)
        spread = 100 * math.sqrt(SHARES[i] * (100 - SHARES[i]) / len(settled)) / 100
        stages.append(
            Stage(
                share=SHARES[i],
                requests=len(inside),
                followed_s=_followed(inside, moments[i], SHARES[i - 1], SHARES[i], champion),
                seen_share=seen,
                right=abs(seen - SHARES[i]) <= SIGMAS * spread,
            )
        )
    failures = sum(version is None for _, _, version in answers)
    return Shifting(stages=tuple(stages), requests=len(answers), failures=failures)


def _followed(
    inside: Iterable[tuple[float, float, int | None]], moment: float, before: int, after: int, champion: int
) -> float:
    gained_by_champion = after > before
    if after in {0, 100}:
        stale = [answered for _, answered, v in inside if v is not None and (v == champion) is not (after == 100)]
        return max(stale, default=moment) - moment
    gained = [answered for _, answered, v in inside if v is not None and (v == champion) is gained_by_champion]
    return min(gained) - moment
