"""Held-out requests sent beside the real traffic: an open loop over several kept connections, in the background."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final

import aiohttp

from seatrial.adapters import gateway
from seatrial.canary.answers import SUSPECTS_MAX, Tally
from seatrial.errors import InvalidInput, StepError, shortened
from seatrial.objects import ARM_HEADER
from seatrial.ports import Answer
from seatrial.triton import requests
from seatrial.triton.requests import Example

REPLAY_HEADER: Final = "x-seatrial-replay"
"""Marks a request as ours, for whoever reads access logs or feeds metrics of the business."""
CONNECTIONS: Final = 16
UNDER_WAY_MAX: Final = 64
"""Most requests without an answer yet; while there are as many, none is sent, and none is caught up on later."""
TICK_S: Final = 0.02
ANSWER_S: Final = aiohttp.ClientTimeout(total=10.0, connect=3.0)
PATIENCE_S: Final = 0.5
"""Seconds for requests in the air when a replay stops: going back must not wait for a candidate that hangs."""
STOP_S: Final = 5.0

Send = Callable[[aiohttp.ClientSession, int], Coroutine[Any, Any, None]]
SendOne = Callable[[], Coroutine[Any, Any, None]]


class HttpReplay:
    """`steps.run_canary.ports.Replay` against a gateway, in a thread of its own."""

    def __init__(self, gateway_url: str) -> None:
        self._url = gateway_url.rstrip("/")
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._answered: Counter[int] = Counter()
        self._counts: Counter[str] = Counter()
        self._suspects: dict[str, None] = {}

    def start(
        self, model_name: str, examples: Sequence[Example], *, version: int, per_s: float, arm: str | None
    ) -> None:
        """Send them shuffled, again and again, until stopped. A replay starts once."""
        if self._thread is not None:
            raise StepError("a replay starts once")
        url = f"{self._url}/v2/models/{model_name}/infer"
        headers = {REPLAY_HEADER: "1", **({ARM_HEADER: arm} if arm else {})}
        bodies = [requests.body(example) for example in examples]

        async def send(session: aiohttp.ClientSession, number: int) -> None:
            answer = await ask(session, url, bodies[number], headers)
            self._count(examples[number], answer, version)

        self._thread = threading.Thread(target=self._run, args=(send, len(examples), per_s), name="replay", daemon=True)
        self._thread.start()

    def so_far(self) -> Tally:
        """What came back since the start.

        Raises:
            StepError: The sender broke.
        """
        if self._failure is not None:
            raise StepError(f"the replay broke: {shortened(self._failure)}") from self._failure
        with self._lock:
            return Tally(
                answered=dict(self._answered),
                failed=self._counts["failed"],
                lost=self._counts["lost"],
                right=self._counts["right"],
                wrong=self._counts["wrong"],
                suspects=tuple(self._suspects),
            )

    def stop(self) -> Tally:
        """Send no more, wait a moment for what is under way; the whole tally."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(STOP_S)
        self._failure = None
        return self.so_far()

    def _run(self, send: Send, count: int, per_s: float) -> None:
        try:
            asyncio.run(self._sending(send, count, per_s))
        except BaseException as error:  # noqa: BLE001 - it is told by the next so_far
            self._failure = error

    async def _sending(self, send: Send, count: int, per_s: float) -> None:
        order = _shuffled(count)
        async with session_of(CONNECTIONS) as session:
            await paced(
                per_s,
                lambda: send(session, next(order)),
                stop=self._stopped.is_set,
                under_way=UNDER_WAY_MAX,
                patience_s=PATIENCE_S,
            )

    def _count(self, example: Example, answer: Answer, version: int) -> None:
        with self._lock:
            if answer.status == 0:
                self._counts["lost"] += 1
                return
            if answer.status != 200:
                self._counts["failed"] += 1
                self._suspect(example)
                return
            self._answered[answer.version or 0] += 1
            if answer.version == version:
                right = example.apart(answer.outputs) <= example.tolerance
                self._counts["right" if right else "wrong"] += 1
                if not right:
                    self._suspect(example)

    def _suspect(self, example: Example) -> None:
        if len(self._suspects) < SUSPECTS_MAX:
            self._suspects[example.id] = None


def from_environment() -> HttpReplay:
    """A replay against the gateway of SEATRIAL_GATEWAY_URL.

    Raises:
        InvalidInput: It is not set.
    """
    url = os.environ.get("SEATRIAL_GATEWAY_URL", "")
    if not url:
        raise InvalidInput("SEATRIAL_GATEWAY_URL not set; it comes from the ConfigMap seatrial-gateway")
    return HttpReplay(url)


def session_of(connections: int) -> aiohttp.ClientSession:
    """A session over so many kept connections, which takes nothing from the environment."""
    connector = aiohttp.TCPConnector(limit=connections)
    return aiohttp.ClientSession(connector=connector, timeout=ANSWER_S, trust_env=False)


async def ask(session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]) -> Answer:
    """One answer; status 0 when none came. Never raises for what the other side does."""
    started = asyncio.get_running_loop().time()
    try:
        async with session.post(url, data=body, headers={"content-type": "application/json", **headers}) as response:
            content = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        words = shortened(f"{type(error).__name__}: {error}")
        return Answer(status=0, version=None, error=words, seconds=asyncio.get_running_loop().time() - started)
    return gateway.answer(response.status, content, seconds=asyncio.get_running_loop().time() - started)


async def paced(per_s: float, send: SendOne, *, stop: Callable[[], bool], under_way: int, patience_s: float) -> None:
    """Start `send` so many times a second, whether or not earlier ones are done, until `stop`.

    At most `under_way` are in the air; what could not be sent meanwhile is left out, not caught up on. In the end those
    in the air have `patience_s` seconds to land.

    Raises:
        Exception: The first that a `send` raised.
    """
    loop = asyncio.get_running_loop()
    flying: set[asyncio.Task[None]] = set()
    due, last = 0.0, loop.time()
    while not stop():
        now = loop.time()
        due, last = due + (now - last) * per_s, now
        while due >= 1 and len(flying) < under_way:
            flying.add(asyncio.create_task(send()))
            due -= 1
        due = min(due, 1.0) if len(flying) >= under_way else due
        await asyncio.sleep(TICK_S)
        flying = _landed(flying)
    if flying:
        await asyncio.wait(flying, timeout=patience_s)
    for task in _landed(flying):
        task.cancel()


def _landed(flying: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Those still in the air; what a landed one raised is raised."""
    done = {task for task in flying if task.done()}
    for task in done:
        task.result()
    return flying - done


def _shuffled(count: int) -> Iterator[int]:
    """Indexes below `count`, each once a pass, in a new order each pass: a gateway's round robin meets no pattern."""
    order, chance = list(range(count)), random.Random(count)  # noqa: S311 - no secret
    while order:
        chance.shuffle(order)
        yield from order
