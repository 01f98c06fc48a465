"""A drill: a candidate that misbehaves, released as any other, under load from a process that knows every answer."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from seatrial import bundle, release
from seatrial.app import drill as drills
from seatrial.app.commands import _load
from seatrial.app.commands._place import models_folder
from seatrial.app.commands._ports import Local, connect
from seatrial.app.commands._running import run_release
from seatrial.app.views.outcome import Ended
from seatrial.errors import IntegrityError, InvalidInput, Unavailable
from seatrial.ports import ArmCounts
from seatrial.release import Release
from seatrial.spec import Spec

AFTERWARDS_S: Final = 3.0
"""The load goes on so long after the release has ended."""
AFTER_MIN: Final = 100
"""Requests that the champion must have answered in the end."""
LOOK_S: Final = 0.1
LOAD_WITHIN_S: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class Drilled:
    """A drill that is over."""

    fault: str
    ended: Ended
    seen: _load.Seen
    champion: int
    champion_errors: int
    """Answers of the champion that the gateway counted as errors during the drill."""
    faults: tuple[str, ...]
    """What did not go as it must; empty: the drill passed."""
    log: Path

    def facts(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {**self.ended.facts(), "drill": {**asdict(self.seen), "fault": self.fault, "log": str(self.log)},
                "champion_errors": self.champion_errors, "faults": list(self.faults)}  # fmt: skip


def drilled(ports: Local, model: str, fault: str, template: dict[str, Any], console: Console) -> Drilled:
    """Run the drill to its end.

    Raises:
        InvalidInput: Nobody serves the model, somebody is on trial, or the model cannot carry the fault.
    """
    champion = _champion(ports, model)
    folder = ports.sandbox.home / "drills" / model
    shutil.rmtree(folder, ignore_errors=True)
    made = _made(ports, model, champion, fault, folder)
    marker, log = folder / "marker", folder / "load.jsonl"
    environment = dict(ports.sandbox.environment)
    environment["seatrial-source"] = {**environment["seatrial-source"], "SEATRIAL_SOURCE": str(folder / "source")}
    parameters = {
        "MODEL_NAME": model,
        "REVISION": "",
        "DATA_URI": _data_uri(ports, model, champion),
        "REASON": f"drill: {fault}",
    }
    before = _errors(ports, model, champion)
    marked = folder / "marked.jsonl" if made.marker else None
    with _load.load(
        gateway=ports.sandbox.gateway_url,
        model=model,
        clean=folder / "clean.jsonl",
        marked=marked,
        marker=marker,
        log=log,
    ):
        _wait_for_load(log)
        with _marking(ports, model, marker):
            ended = run_release(ports, template, parameters, environment=environment, console=console)
        time.sleep(AFTERWARDS_S)
    result = Drilled(
        fault=fault,
        ended=ended,
        seen=_load.seen(log, champion),
        champion=champion,
        champion_errors=_errors(ports, model, champion) - before,
        faults=(),
        log=log,
    )
    return replace(result, faults=tuple(_faults(ports, result)))


def _champion(ports: Local, model: str) -> int:
    state = ports.router.read(model)
    if state.champion is None:
        raise InvalidInput(
            f"a drill needs a champion that takes over again, and nobody serves {model}: release it first"
        )
    if state.candidate is not None:
        raise InvalidInput(f"v{state.candidate} of {model} is on trial: wait until its release is over")
    return state.champion


def _made(ports: Local, model: str, champion: int, fault: str, folder: Path) -> drills.Drill:
    """Write the drill's source and its requests."""
    spec = Spec.model_validate_json(ports.paper(model, champion, "spec.json"))
    key = f"{bundle.prefix(release.serving(ports.store, model, champion).bundle)}/{bundle.MODEL_FILE}"
    graph, replay = ports.store.read(key), ports.paper(model, champion, "replay.jsonl")
    if graph is None:
        raise IntegrityError(f"v{champion} of {model} serves, and the store has no {key}")
    own = models_folder(ports.source) / model
    made = drills.drill_source(graph, spec, fault, folder / "source", source=own)
    (folder / "clean.jsonl").write_bytes(replay)
    if made.marker is not None:
        (folder / "marked.jsonl").write_bytes(drills.marked_requests(graph, replay, spec, made.marker))
    return made


def _data_uri(ports: Local, model: str, version: int) -> str:
    """The data that the champion was made from."""
    reserved = json.loads(ports.store.read(release.reservation_key(model, version)) or b"{}")
    raw = ports.store.read(release.key(model, str(reserved.get("release_id", ""))))
    if raw is None:
        raise IntegrityError(f"the store does not know the release of v{version} of {model}")
    return Release.model_validate_json(raw).data_uri


def _errors(ports: Local, model: str, version: int) -> int:
    return ports.traffic.scrape(model).versions.get(version, ArmCounts(requests=0, errors=0)).errors


def _wait_for_load(log: Path) -> None:
    deadline = time.monotonic() + LOAD_WITHIN_S
    while not (log.is_file() and log.stat().st_size):
        if time.monotonic() > deadline:
            raise Unavailable(f"the load does not get going; it says {log.with_suffix('.err')}")
        time.sleep(LOOK_S)


@contextmanager
def _marking(ports: Local, model: str, marker: Path) -> Iterator[None]:
    """Switch the marker on when the candidate has weight."""
    over = threading.Event()
    thread = threading.Thread(target=_mark, args=(connect(ports.sandbox), model, marker, over.is_set), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5)


def _mark(ports: Local, model: str, marker: Path, over: Callable[[], bool]) -> None:
    while not over():
        with suppress(Unavailable):  # the route is looked at again
            state = ports.router.read(model)
            if state.candidate is not None and state.weights.get(state.candidate, 0) > 0:
                marker.touch()
                return
        time.sleep(LOOK_S)


def _faults(ports: Local, drill: Drilled) -> Iterator[str]:
    """What did not go as it must."""
    ended, seen, champion = drill.ended, drill.seen, f"v{drill.champion}"
    state = ports.router.read(ended.model)
    if ended.outcome != "rolled_back":
        yield f"the release ended {ended.outcome}, and must end rolled_back"
    if state.champion != drill.champion or state.weights != {drill.champion: 100}:
        yield f"{champion} must have all traffic; the route says {state.weights}"
    if seen.after < AFTER_MIN:
        yield f"{champion} must answer everything in the end; it answered the last {seen.after} requests"
    if seen.lost or seen.wrong:
        yield f"{seen.lost} requests were lost and {seen.wrong} answered wrong"
    if drill.fault == "errors" and seen.early:
        yield f"{seen.early} requests without the marker got no right answer: nothing may fail before the fault"
    if drill.champion_errors:
        yield f"{drill.champion_errors} errors were {champion}'s own: outside the candidate's share nothing may fail"
    others = set(seen.answered_by) - {champion}
    if drill.fault == "never_ready" and (seen.failed or others):
        yield f"nobody but {champion} may get traffic; {seen.failed} failed, {sorted(others)} answered"
    if drill.fault == "errors" and seen.first_bad_s is None:
        yield "the fault was never met: no request failed"
