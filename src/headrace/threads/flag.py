"""A flag that one thread sets and another waits for, wherever a Ctrl-C comes meanwhile.

Python raises KeyboardInterrupt between any two instructions of the main thread, also between taking a lock and the
`with` that would give it back. `threading.Event`, `concurrent.futures.wait` and `asyncio.wrap_future` take locks that
the other thread needs too, so one left held keeps it waiting for good. Here setting the flag takes none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial


class Flag:
    """Set once, by one thread."""

    def __init__(self) -> None:
        self.is_set = False
        self._until_set = threading.Lock()
        self._until_set.acquire()
        self._wakes: list[Callable[[], object]] = []  # one for each coroutine that waits

    def set(self) -> None:
        if self.is_set:
            return
        self.is_set = True
        self._until_set.release()
        for wake in self._wakes.copy():
            with suppress(RuntimeError):  # its loop is closed
                wake()

    def wait(self, longest_s: float) -> bool:
        """Wait until it is set, at most so long; return whether it is."""
        # A Ctrl-C between the two lines leaves the lock held: another waiter then returns after its `longest_s`.
        if not self.is_set and self._until_set.acquire(timeout=longest_s):
            self._until_set.release()
        return self.is_set

    async def reached(self) -> None:
        """Wait until it is set, on whatever loop this runs."""
        woken = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, woken.set)
        self._wakes.append(wake)  # before the look: what is set behind that sees it
        try:
            if not self.is_set:
                await woken.wait()
        finally:
            self._wakes.remove(wake)
