"""The drill's load: a process of its own that knows every right answer and writes down what became of each request.

    python -m seatrial.app.load --gateway http://127.0.0.1:8080 --model cart_abandonment --requests replay.jsonl \
        --log load.jsonl --rate 200 --seconds 60 [--marked-requests marked.jsonl --marker-file go]

One JSON line a request: t (seconds since the start), s (status, 0: no answer), v (version, null: not told),
r (right: true, false, null when there is no answer to judge), m (marked). The last line is a summary.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from seatrial import names
from seatrial.adapters.replay import ask, paced, session_of
from seatrial.errors import InvalidInput, StepError
from seatrial.ports import Answer
from seatrial.triton import requests
from seatrial.triton.requests import Example

RATE_MAX: Final = 2000.0
SECONDS_MAX: Final = 3600.0
CONNECTIONS: Final = 32
UNDER_WAY_MAX: Final = 256
PATIENCE_S: Final = 12.0
"""Over the time limit of an answer: every request that was sent is written down."""


@dataclass(kw_only=True)
class Load:
    """One run of it."""

    gateway: str
    model: str
    clean: Sequence[Example]
    marked: Sequence[Example]
    marker_file: Path | None
    """Requests are marked from the moment that this file exists."""
    marker_after: int | None
    """Requests are marked after so many."""
    rate: float
    seconds: float
    log: IO[str]
    stopped: bool = False
    sent: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    by_version: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    marking: bool = False

    async def run(self) -> None:
        """Send at the rate until the time is up or somebody stops it; write the summary."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._stop)
        start = loop.time()
        picks = random.Random(self.model)  # noqa: S311 - no secret
        url = f"{self.gateway.rstrip('/')}/v2/models/{self.model}/infer"

        async with session_of(CONNECTIONS) as session:

            async def send() -> None:
                self.sent += 1
                marked = self._marks()
                example = picks.choice(self.marked if marked else self.clean)
                at = loop.time() - start
                self._write(at, example, await ask(session, url, requests.body(example), {}), marked=marked)

            def over() -> bool:
                return self.stopped or loop.time() - start >= self.seconds

            await paced(self.rate, send, stop=over, under_way=UNDER_WAY_MAX, patience_s=PATIENCE_S)
        self._line({"summary": self.summary(loop.time() - start)})

    def summary(self, seconds: float) -> dict[str, Any]:
        """Counts of the whole run."""
        return {
            "requests": self.sent,
            "seconds": round(seconds, 3),
            "by_status": dict(self.by_status),
            "by_version": dict(self.by_version),
            "right": self.totals["right"],
            "wrong": self.totals["wrong"],
            "lost": self.totals["lost"],
            "failed": self.totals["failed"],
            "marked": self.totals["marked"],
            "clean_not_right": self.totals["clean_not_right"],
        }

    def _stop(self) -> None:
        self.stopped = True

    def _marks(self) -> bool:
        if not self.marking and self.marked:
            by_file = self.marker_file is not None and self.marker_file.exists()
            self.marking = by_file or (self.marker_after is not None and self.sent > self.marker_after)
        return self.marking

    def _write(self, at: float, example: Example, answer: Answer, *, marked: bool) -> None:
        right = example.apart(answer.outputs) <= example.tolerance if answer.status == 200 else None
        self.by_status[str(answer.status)] += 1
        self.by_version["none" if answer.version is None else str(answer.version)] += 1
        kind = {True: "right", False: "wrong", None: "failed" if answer.status else "lost"}[right]
        self.totals.update([kind, *(["marked"] if marked else ["clean_not_right"] if right is not True else [])])
        self._line({"t": round(at, 3), "s": answer.status, "v": answer.version, "r": right, "m": marked})

    def _line(self, fact: dict[str, Any]) -> None:
        self.log.write(json.dumps(fact, separators=(",", ":")) + "\n")
        self.log.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 78 for wrong arguments."""
    try:
        given = _parser().parse_args(arguments)
        with Path(given.log).open("w", encoding="utf-8") as log:
            asyncio.run(_load(given, log).run())
    except StepError as error:
        sys.stderr.write(f"load: {error}\n")
        return error.exit_code
    return 0


def _load(given: argparse.Namespace, log: IO[str]) -> Load:
    address = urlsplit(given.gateway)
    if address.scheme != "http" or not _is_here(address.hostname or ""):
        raise InvalidInput(
            f"the drill's load is for a gateway on this machine, like http://127.0.0.1:8080; got {given.gateway!r}"
        )
    if not 0 < given.rate <= RATE_MAX or not 0 < given.seconds <= SECONDS_MAX:
        raise InvalidInput(f"the load is bounded: at most {RATE_MAX:g} requests a second for {SECONDS_MAX:g} s")
    clean = _examples(given.requests)
    if not clean:
        raise InvalidInput(f"{given.requests} holds no request")
    return Load(
        gateway=given.gateway,
        model=names.model_name(given.model),
        clean=clean,
        marked=_examples(given.marked_requests) if given.marked_requests else (),
        marker_file=given.marker_file,
        marker_after=given.marker_after,
        rate=given.rate,
        seconds=given.seconds,
        log=log,
    )


def _is_here(host: str) -> bool:
    """Whether `host` is an address of this machine, or of the network namespace that the load runs in."""
    try:
        with socket.socket(socket.AF_INET) as own:
            own.bind((host, 0))
    except OSError:
        return False
    return host != ""


def _examples(path: Path) -> list[Example]:
    try:
        return requests.parse(path.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"{path} must hold requests as JSON lines: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m seatrial.app.load", description="The drill's load.")
    parser.add_argument("--gateway", required=True, help="on this machine, like http://127.0.0.1:8080")
    parser.add_argument("--model", required=True, help="model name")
    parser.add_argument("--requests", required=True, type=Path, help="clean requests with right answers, JSON lines")
    parser.add_argument("--marked-requests", type=Path, help="marked requests with right answers, JSON lines")
    parser.add_argument("--marker-file", type=Path, help="send marked requests once this file exists")
    parser.add_argument("--marker-after", type=int, help="send marked requests after so many")
    parser.add_argument("--log", required=True, type=Path, help="where each request is written down")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    return parser


if __name__ == "__main__":
    sys.exit(main())
