"""The threads that operations run in: a few, so that reading never takes more than a few readers' memory, and a bounded
queue before them, of which one client has no more than a part. What the page reads by itself, for live updates, has
threads of its own, and so has steering, which waits for other processes: however slow they are, who reads does not wait
for them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headrace.errors import HeadraceError

_THREADS, _MOST_WAITING, _MOST_OF_A_CLIENT = 4, 64, 48
_OWN_THREADS, _STEERING_THREADS = 2, 8
Read = TypeVar("Read")


class TooBusy(HeadraceError):
    """So many requests wait already that another one would only wait longer."""

    def __init__(self) -> None:
        super().__init__("The page is busy: too many requests at once.", fix="Try again in a moment.")


class Reads:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-read")
        self._own_threads = ThreadPoolExecutor(_OWN_THREADS, thread_name_prefix="headrace-live")
        self._steering_threads = ThreadPoolExecutor(_STEERING_THREADS, thread_name_prefix="headrace-steer")
        self._asked: Counter[str | None] = Counter()

    async def run_own(self, function: Callable[[], Read]) -> Read:
        """Read in a thread for the page itself, in its turn: there are as many readings as things that are watched."""
        return await asyncio.get_running_loop().run_in_executor(self._own_threads, function)

    async def run(self, function: Callable[[], Read], client: str | None) -> Read:
        """Read in a thread for the client with this address."""
        return await self._run_in(self._threads, function, client)

    async def steer(self, function: Callable[[], Read], client: str | None) -> Read:
        """Have a process do something, in a thread that waits for its answer."""
        return await self._run_in(self._steering_threads, function, client)

    async def _run_in(self, threads: ThreadPoolExecutor, function: Callable[[], Read], client: str | None) -> Read:
        asked = self._asked
        if asked.total() >= _THREADS + _MOST_WAITING or asked[client] >= _MOST_OF_A_CLIENT:
            raise TooBusy
        asked[client] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, function)
        finally:
            asked[client] -= 1
            if not asked[client]:
                del asked[client]

    def close(self) -> None:
        for threads in (self._threads, self._own_threads, self._steering_threads):
            threads.shutdown(wait=True, cancel_futures=True)
