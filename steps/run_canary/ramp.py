"""The ramp: traffic stage by stage, a look at each interval, a ruling after each look.

Two scrapes of one weight make an interval. After a change of weight the gateway is given time to follow before the
first of them is taken, so the interval that straddles the change is never counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from seatrial.canary import judge, record
from seatrial.canary.answers import Tally
from seatrial.canary.counts import Counts, between
from seatrial.canary.judge import Evidence, Ruling
from seatrial.canary.record import Ending, Look, Opening
from seatrial.canary.stages import Stage
from seatrial.errors import Superseded, Unavailable
from seatrial.ports import ArmCounts, Scrape
from seatrial.route import RouteState, shift
from seatrial.route.state import CANARY_ARM
from seatrial.triton.requests import Example
from steps import _runtime
from steps.run_canary import golden
from steps.run_canary.attempt import Attempt

FOLLOW_S: Final = 2.0
"""Seconds until the gateway follows a change at its slowest. Source: Traefik, providersThrottleDuration."""
FOLLOW_AT_LAST_S: Final = 20.0
"""Seconds into a stage from which on a gateway that splits as before does not split as asked. It may have to find its
own way back first: a Traefik whose API server restarts has taken 8 s.
"""
LEASE_S: Final = 300.0
"""For so long the route says that somebody watches; renewed at half of it, so that a dead watcher is soon known."""
FIRST_RELEASE_PER_S: Final = 20.0
"""Requests a second by header to a first release whose plan replays none."""
CONFIRMED_PER_LOOK: Final = 5
"""Most suspects asked again after one look."""


@dataclass
class Ramp:
    """One candidate on its way up."""

    attempt: Attempt
    champion: int | None
    looks: list[Look] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    confirmed: str | None = None
    """Id of a replayed request that the candidate answered wrong again and again."""
    _asked_again: set[str] = field(default_factory=set)
    _leased_until: datetime | None = None
    _follows: Literal["unseen", "late", "yes"] = "unseen"
    """Whether the gateway splits by the stage's weight."""

    def __post_init__(self) -> None:
        self.inputs, self.papers, self.ports = self.attempt.inputs, self.attempt.papers, self.attempt.ports
        self.path = self.attempt.scratch / "record.jsonl"
        self.evidence: Evidence = judge.begin(self.papers.spec.canary, champion=self.champion is not None)
        self._suspectable: Mapping[str, Example] = {example.id: example for example in self.papers.replay}

    def open(self) -> None:
        """Begin the record, and see to it that the candidate stands at weight 0, watched."""
        self._write(
            Opening(
                release_id=self.inputs.release_id,
                model_name=self.inputs.model_name,
                version=self.inputs.version,
                champion=self.champion,
                bundle=self.inputs.bundle_digest,
                plan=self.papers.spec.canary,
                replay=self._replay_mode(),
            )
        )
        self._hold_at(0)

    def run(self) -> Ruling:
        """Every stage until one is not passed; the replay has ended when it returns.

        Raises:
            Superseded: Somebody else owns the route.
            Frozen: Somebody changed it by hand.
            Unavailable: The route cannot be changed.
        """
        self._start_replay()
        try:
            while True:
                ruling = self._stage()
                if ruling.decision != "pass" or self.evidence.at == len(self.evidence.stages) - 1:
                    return ruling
                self.evidence = self.evidence.onward()
        finally:
            self.tally = self.ports.replay.stop()

    def close(self, ending: Ending) -> bytes:
        """End the record; all of it."""
        self._write(ending)
        return self.path.read_bytes()

    def _stage(self) -> Ruling:
        stage, clock = self.evidence.stage, self.ports.clock
        self._hold_at(stage.weight)
        self._follows = "unseen"
        _runtime.event("stage", words=f"{stage.name} to v{self.inputs.version}", weight=stage.weight)
        clock.sleep(FOLLOW_S)
        before, replayed = self._scrape(stage), self.ports.replay.so_far().requests
        beside = stage.kind != "header" and self._replay_mode() != "weighted"
        started = clock.now()
        while True:
            clock.sleep(self._interval_s)
            after = self._scrape(stage)
            tally = self.ports.replay.so_far()
            elapsed_s = (clock.now() - started).total_seconds()
            counts = self._followed(self._between(before, after), elapsed_s)
            ours = 0 if beside else max(0, tally.requests - replayed)
            ruling = self._look(counts, elapsed_s, ours)
            if ruling.decision != "fail" and self._answers_wrong(tally):
                return Ruling(decision="fail", reason=f"request {self.confirmed} was answered wrong again and again")
            if ruling.decision != "hold":
                return ruling
            before, replayed = after or before, tally.requests if after else replayed
            self._still_ours(stage)

    def _look(self, counts: Counts | str, elapsed_s: float, replayed: int) -> Ruling:
        surge = not isinstance(counts, str) and self.evidence.surges(counts)
        if not isinstance(counts, str):
            self.evidence = self.evidence.after(counts)
        ruling = judge.rule(self.evidence, elapsed_s)
        at = self.ports.clock.now()
        seen = record.look(self.evidence, ruling, counts, at=at, elapsed_s=elapsed_s, surge=surge, replayed=replayed)
        self.looks.append(seen)
        self._write(seen)
        words = f"{self.evidence.stage.name}: {ruling.reason}{f' ({counts})' if isinstance(counts, str) else ''}"
        _runtime.event("look", words=words, decision=ruling.decision, elapsed_s=round(elapsed_s, 1))
        return ruling

    @property
    def _interval_s(self) -> float:
        return self.papers.spec.canary.interval_s

    def _between(self, before: Scrape | None, after: Scrape | None) -> Counts | str:
        if after is None:
            return "the gateway's counts cannot be read"
        if before is None:
            return "the first counts after a silence"
        return between(before, after, stable=self.champion, canary=self.inputs.version, interval_s=self._interval_s)

    def _followed(self, counts: Counts | str, elapsed_s: float) -> Counts | str:
        """The counts, unless the gateway still splits as before, or has turned to the new weight within this interval.

        Only what comes before the gateway is first seen to follow is left out, so no share is chosen by its look.
        """
        if isinstance(counts, str) or not counts.requests or self._follows == "yes":
            return counts
        late = self.evidence.splits_as_before(counts) and elapsed_s < FOLLOW_AT_LAST_S
        was, self._follows = self._follows, "late" if late else "yes"
        if late:
            return "the gateway does not follow yet"
        turned = was == "late" and elapsed_s < FOLLOW_AT_LAST_S
        return "the gateway has just followed" if turned else counts

    def _scrape(self, stage: Stage) -> Scrape | None:
        """The gateway's counts; by header it counts nothing, so the replay's own tally stands in. None: away."""
        if stage.kind == "header":
            return _counted(self.ports.replay.so_far(), self.inputs.version, self.ports.clock.now())
        try:
            return self.ports.traffic.scrape(self.inputs.model_name)
        except Unavailable as error:
            _runtime.event("no_counts", error=str(error))
            return None

    def _answers_wrong(self, tally: Tally) -> bool:
        new = [one for one in tally.suspects if one not in self._asked_again and one in self._suspectable]
        again = new[:CONFIRMED_PER_LOOK]
        self._asked_again.update(again)
        found = golden.confirmed(self.inputs, [self._suspectable[one] for one in again], self.ports.predictions)
        if found is not None:
            self.confirmed = found.id
        return found is not None

    def _still_ours(self, stage: Stage) -> None:
        """Renew the lease when half of it is over; a route API that is away for a moment changes nothing."""
        now = self.ports.clock.now()
        if self._leased_until is None or self._leased_until - now < timedelta(seconds=LEASE_S / 2):
            self._hold_at(stage.weight)
            return
        try:
            state = self.ports.router.read(self.inputs.model_name)
        except Unavailable as error:
            _runtime.event("route_not_read", error=str(error))
            return
        self._held(state, stage.weight, state.watched_until or now)

    def _hold_at(self, weight: int) -> None:
        until = self.ports.clock.now() + timedelta(seconds=LEASE_S)
        self.ports.router.change(
            self.inputs.model_name,
            lambda state: self._held(state, weight, until),
            action="shift",
            reason=f"canary at {weight} %: {self.inputs.reason}",
        )
        self._leased_until = until

    def _held(self, state: RouteState, weight: int, until: datetime) -> RouteState | None:
        owner, version = self.inputs.release_id, self.inputs.version
        if self.champion is not None:
            return shift(state, version=version, weight=weight, owner=owner, watched_until=until)
        if state.owner != owner or state.candidate != version or state.champion is not None:
            raise Superseded(f"v{version} of {owner} is not on trial any more: {state.owner or 'nobody'} wrote last")
        return None if state.watched_until == until else state.but(watched_until=until)

    def _replay_mode(self) -> record.ReplayMode:
        if self.champion is None:
            return "header"
        if not self.papers.spec.canary.replay_per_s or not self.papers.replay:
            return "none"
        return "weighted" if self.ports.promote_on_replay else "header"

    def _start_replay(self) -> None:
        """By header beside real traffic, the candidate gets no more than its first share would be."""
        plan, mode = self.papers.spec.canary, self._replay_mode()
        if mode == "none":
            return
        per_s = plan.replay_per_s
        if self.champion is None:
            per_s = per_s or FIRST_RELEASE_PER_S
        elif mode == "header":
            per_s *= plan.steps[0].weight / 100
        self.ports.replay.start(
            self.inputs.model_name,
            self.papers.replay,
            version=self.inputs.version,
            per_s=per_s,
            arm=CANARY_ARM if mode == "header" else None,
        )

    def _write(self, entry: Opening | Look | Ending) -> None:
        with self.path.open("ab") as file:
            file.write(record.line(entry))


def _counted(tally: Tally, version: int, at: datetime) -> Scrape:
    bad = tally.failed + tally.lost
    requests = tally.answered.get(version, 0) + bad
    return Scrape(at=at, versions={version: ArmCounts(requests=requests, errors=bad)})
