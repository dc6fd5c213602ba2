"""The threads that operations run in: a few, so that reading never takes more than a few readers' memory, and a bounded
queue before them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headrace.errors import HeadraceError

_THREADS, _MOST_WAITING = 4, 64
Read = TypeVar("Read")


class TooBusy(HeadraceError):
    """So many requests wait already that another one would only wait longer."""

    def __init__(self) -> None:
        super().__init__("The page is busy: too many requests at once.", fix="Try again in a moment.")


class Reads:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-read")
        self._asked = 0

    async def run(self, function: Callable[[], Read]) -> Read:
        if self._asked >= _THREADS + _MOST_WAITING:
            raise TooBusy
        self._asked += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, function)
        finally:
            self._asked -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
