"""What the scenarios of benchmarks.fairness share: their surroundings, a user who talks to a run, and the peer.

A scenario is measured by the seconds until what a user waits for: a reply, a start, an end. Those of one priority, or
of one group of users in it, are kept together under a label.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp

from headrace import Engine, Model, Priority
from headrace.errors import RunFailed

Waits = dict[str, Sequence[float | None]]  # by label, in seconds; None where what was waited for never came
POOL_WORKERS = 2
_SCENARIOS = "benchmarks.children.fair_scenario"  # imported once, and shared by all workers
_MOST_POLLS = 2_000
_POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a scenario takes place. `url` is the model server's, empty where none is asked."""

    directory: Path
    url: str
    is_quick: bool

    def engine(self, memory: str = "512MB", **options: Any) -> Engine:
        settings: dict[str, Any] = {"slots": 2, "slot_memory": "400MB", "preload": [_SCENARIOS], **options}
        return Engine(self.directory / "fair.run", isolation="process", memory=memory, **settings)

    def size(self, full: int, quick: int) -> int:
        return quick if self.is_quick else full


@dataclass(frozen=True, slots=True)
class Scenario:
    """The same play twice: with an engine, and with the peer."""

    with_engine: Callable[[Stage], Awaitable[Waits]]
    with_pool: Callable[[Stage], Awaitable[Waits]]


class User:
    """Somebody who talks to an agent run: each message is answered by an event that the run emits."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._replies: asyncio.Queue[float] = asyncio.Queue()
        self._listener = asyncio.ensure_future(self._listen())

    @classmethod
    async def of(cls, run: Any) -> Self:
        """Whoever talks to this run, once the run waits for a message."""
        user = cls(run)
        await until(lambda: run.status().state.name == "RECEIVING")
        return user

    async def say(self, message: str) -> float:
        """Seconds until the reply."""
        began_s = time.monotonic()
        await self._run.send(message)
        return await self._replies.get() - began_s

    async def leave(self) -> None:
        self._listener.cancel()
        with suppress(asyncio.CancelledError):
            await self._listener

    async def _listen(self) -> None:
        async for _ in self._run.events():
            self._replies.put_nowait(time.monotonic())


async def until(is_so: Callable[[], bool]) -> None:
    """Look again and again, 20 s at the most: what comes later shows in the figures."""
    for _ in range(_MOST_POLLS):
        if is_so():
            return
        await asyncio.sleep(_POLL_S)


async def since(began_at: float, run: Any) -> float | None:
    """Seconds from then to the time that the run returns; None where it was given up."""
    try:
        return await run.result() - began_at
    except RunFailed:
        return None


class PriorityPool:
    """The peer: an asyncio.PriorityQueue, and a fixed pool of two that serves it. Use it as `async with`."""

    def __init__(self) -> None:
        self._waiting: asyncio.PriorityQueue[tuple[int, int, Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = (
            asyncio.PriorityQueue()
        )
        self._numbers = itertools.count()  # of one priority: first come, first served
        self._workers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._workers = [asyncio.ensure_future(self._work()) for _ in range(POOL_WORKERS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def call(self, service: Callable[[], Awaitable[Any]], priority: Priority = Priority.HIGH) -> Any:
        """The service's result, when its turn has come and it has ended."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((-priority, next(self._numbers), service, done))
        return await done

    async def timed(self, service: Callable[[], Awaitable[Any]], priority: Priority = Priority.HIGH) -> float:
        """Seconds from here to the time that the service returns."""
        began_at = time.time()
        return await self.call(service, priority) - began_at

    async def _work(self) -> None:
        while True:
            _, _, service, done = await self._waiting.get()
            result = await service()
            if not done.cancelled():
                done.set_result(result)


async def now() -> float:
    """The service of one who waits for nothing but a start."""
    return time.time()


def sleeping(seconds: float) -> Callable[[], Awaitable[float]]:
    async def service() -> float:
        await asyncio.sleep(seconds)
        return time.time()

    return service


def asking(session: aiohttp.ClientSession, url: str, prompt: str) -> Callable[[], Awaitable[float]]:
    """A model's reply as the peer gets it: the same request to the same server."""

    async def service() -> float:
        asked = {"model": "fair", "messages": [{"role": "user", "content": prompt}]}
        async with session.post(f"{url}/chat/completions", json=asked) as response:
            await response.read()
        return time.time()

    return service


def model(url: str, **parameters: Any) -> Model:
    return Model("fair", base_url=url, **parameters)
