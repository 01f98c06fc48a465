"""run_canary: the candidate gets traffic step by step; it is promoted on evidence, or taken back.

    papers    the earlier gates' verdicts and what they judged, believed before each attempt, or nothing happens
    golden    every golden request by header, at weight 0
    ramp      the plan's steps, then all traffic for a last watch while the champion still runs
    ending    promote or go back, read back who answers, sign

Whatever goes wrong, a candidate with traffic is taken out first. An attempt after a crash starts again from weight 0,
or ends what the one before had decided: a promotion only on the record that it kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from seatrial.canary import checks
from seatrial.canary.judge import Ruling
from seatrial.canary.record import Ending
from seatrial.errors import Frozen, IntegrityError, StepError, Superseded
from seatrial.route import RouteState
from seatrial.spec import Decision
from seatrial.verdict import Check
from steps import _runtime
from steps._papers import Papers
from steps.run_canary import ending, golden, papers
from steps.run_canary.attempt import Attempt
from steps.run_canary.contract import STEP, Inputs, Outputs
from steps.run_canary.ending import Trial
from steps.run_canary.ports import Ports
from steps.run_canary.ramp import Ramp

Standing = Literal["on_trial", "promoted", "gone", "superseded"]


def run(inputs: Inputs, scratch: Path, ports: Ports) -> Outputs:
    """Try the candidate on traffic.

    Raises:
        IntegrityError: The papers do not allow it, or the route was promoted without a record.
        Frozen: Somebody changed the route by hand.
        Unavailable: The route cannot be changed, or nobody can be seen to answer.
    """
    state = ports.router.read(inputs.model_name)
    stands = standing(state, inputs)
    attempt = Attempt(inputs=inputs, papers=_believed(inputs, ports, state), ports=ports, scratch=scratch)
    _runtime.event("canary", stands=stands, champion=state.champion, candidate=state.candidate, weights=state.weights)
    if stands == "on_trial":
        return _tried(attempt, state.champion)
    if stands == "promoted":
        return _promoted_before(attempt)
    if stands == "gone":
        return _gone(attempt, state.champion)
    return _superseded(attempt, Superseded(f"{state.owner or 'nobody'} wrote the route last"))


def standing(state: RouteState, inputs: Inputs) -> Standing:
    """What the route says of this release's candidate, also after a crash of an earlier attempt."""
    if state.candidate == inputs.version and state.owner == inputs.release_id:
        return "on_trial"
    if state.champion == inputs.version:
        return "promoted"
    if not state.exists or (state.candidate is None and state.owner == inputs.release_id):
        return "gone"
    return "superseded"


def _believed(inputs: Inputs, ports: Ports, state: RouteState) -> Papers:
    """The papers; what an attempt before gave traffic, and cannot be believed now, has none while somebody finds out.

    At weight 0 nothing is taken out: a store that is away for a moment costs an attempt, not the release.
    """
    try:
        return papers.read(inputs, ports)
    except StepError as error:
        if standing(state, inputs) == "on_trial" and state.weights.get(inputs.version, 0) > 0:
            _out_of_the_way(inputs, ports, error)
        raise


def _tried(attempt: Attempt, champion: int | None) -> Outputs:
    inputs, ports = attempt.inputs, attempt.ports
    ramp = Ramp(attempt=attempt, champion=champion)
    made: list[Check] = []
    try:
        ramp.open()
        made.append(golden.check(inputs, attempt.papers.golden, ports.predictions, ports.clock))
        ruling = ramp.run() if made[0].decision == "pass" else Ruling(decision="hold", reason="no traffic was given")
        made += _judged(ramp, ruling)
        decision = _worst(made)
        if decision == "pass" and champion is not None:
            ending.answering(attempt, expected={inputs.version})
        kept = ramp.close(Ending(decision=decision, checks=tuple(made)))
        trial = Trial(champion=champion, checks=tuple(made), looks=ramp.looks, record=kept)
        if decision == "pass":
            ending.keep(attempt, papers.RECORD, kept, must=True)
            return _promoted(attempt, trial)
        return _back(attempt, trial)
    except Superseded as error:
        return _superseded(attempt, error, ramp=ramp, made=made)
    except Frozen:
        raise
    except Exception as error:
        _out_of_the_way(inputs, ports, error)
        raise


def _judged(ramp: Ramp, ruling: Ruling) -> list[Check]:
    """The checks on the ramp; a wrong answer stops it, and then the counts decide nothing."""
    counted = ruling if ramp.confirmed is None else Ruling(decision="hold", reason="a wrong answer ended it before")
    made = [checks.errors(ramp.evidence, counted, ramp.looks)]
    if ramp.champion is not None:
        made.append(checks.split(ramp.evidence, ramp.looks))
    if ramp.tally.requests:
        made.append(checks.replay_answers(ramp.tally, ramp.confirmed))
    return made


def _worst(made: list[Check]) -> Decision:
    decisions = {check.decision for check in made}
    return "fail" if "fail" in decisions else "inconclusive" if "inconclusive" in decisions else "pass"


def _promoted(attempt: Attempt, trial: Trial) -> Outputs:
    seen = ending.promoted(attempt)
    return ending.written(attempt, _with(trial, seen), outcome="promoted")


def _back(attempt: Attempt, trial: Trial) -> Outputs:
    """First the traffic, then everything else."""
    reason = next(check.reason for check in trial.checks if check.decision != "pass")
    serves = ending.take_back(attempt.inputs, attempt.ports, reason)
    ending.keep(attempt, papers.RECORD, trial.record, must=False)
    seen = ending.answering(attempt, expected=() if serves is None else (serves,))
    return ending.written(attempt, _with(trial, seen), outcome="rolled_back")


def _promoted_before(attempt: Attempt) -> Outputs:
    """An earlier attempt promoted the candidate and died; its record must show that it was right to."""
    kept = papers.kept_record(attempt.inputs, attempt.ports)
    if kept is None or kept[3].decision != "pass":
        inputs = attempt.inputs
        raise IntegrityError(
            f"v{inputs.version} serves {inputs.model_name}, but no record of release {inputs.release_id} shows why: "
            f"see its ledger, and `seatrial rollback {inputs.model_name}` if it should not"
        )
    text, opening, looks, end = kept
    trial = Trial(champion=opening.champion, checks=end.checks, looks=looks, record=text)
    return _promoted(attempt, trial)


def _gone(attempt: Attempt, champion: int | None) -> Outputs:
    """An earlier attempt took the candidate back and died, or somebody else did."""
    kept = papers.kept_record(attempt.inputs, attempt.ports)
    if kept is not None and kept[3].decision != "pass":
        text, opening, looks, end = kept
        trial = Trial(champion=opening.champion, checks=end.checks, looks=looks, record=text)
    else:
        gone = Check(name="errors", decision="inconclusive", reason="the candidate had been taken back already")
        trial = Trial(champion=champion, checks=(gone,), looks=(), record=b"")
    seen = ending.answering(attempt, expected=() if champion is None else (champion,))
    return ending.written(attempt, _with(trial, seen), outcome="rolled_back")


def _superseded(
    attempt: Attempt, why: Superseded, *, ramp: Ramp | None = None, made: list[Check] | None = None
) -> Outputs:
    """The route is somebody else's: nothing is touched."""
    errors = Check(name="errors", decision="inconclusive", reason=f"superseded: {why}")
    found = (*(check for check in made or () if check.name != "errors"), errors)
    record = b"" if ramp is None else ramp.close(Ending(decision="inconclusive", checks=found))
    champion = None if ramp is None else ramp.champion
    trial = Trial(champion=champion, checks=found, looks=() if ramp is None else ramp.looks, record=record)
    return ending.written(attempt, trial, outcome="superseded")


def _out_of_the_way(inputs: Inputs, ports: Ports, error: Exception) -> None:
    """Take the candidate out before the error is told; when even that fails, settle_release will."""
    try:
        ending.take_back(inputs, ports, f"the canary broke off: {error}")
    except StepError as second:
        _runtime.event("not_taken_back", error=str(second))


def _with(trial: Trial, seen: Check) -> Trial:
    return Trial(champion=trial.champion, checks=(*trial.checks, seen), looks=trial.looks, record=trial.record)


if __name__ == "__main__":
    from seatrial.adapters import clock, gateway, keys, kubernetes, replay, s3
    from seatrial.ledger import Book
    from seatrial.route import Router

    def _ports() -> Ports:
        store, time, traefik = s3.from_environment(), clock.from_environment(), gateway.from_environment()
        cluster = kubernetes.from_environment()
        book = Book(store, time)
        return Ports(
            store=store,
            router=Router(cluster.routes, time, namespace=cluster.namespace, book=book, say=_runtime.event),
            predictions=traefik.predictions,
            traffic=traefik.traffic,
            replay=replay.from_environment(),
            clock=time,
            signing_key=keys.signing_key(),
            trusted_keys=keys.trusted_keys(),
            promote_on_replay=traefik.promote_on_replay,
        )

    _runtime.main("run_canary", STEP, Inputs, lambda i, s: run(i, s, _ports()))
