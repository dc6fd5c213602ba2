"""A worker's event loop whose turns the warden can count, and which dumps its stack when the warden asks.

The loop counts its turns in memory that it shares with the warden, which costs no message, and nothing while it waits.
The warden asks by a signal (threads.stack_dump); the dump goes to a memfd, which the warden opens through /proc. Does
not cover: noticing, asking and reading (workers.warden.stuck). Linux only: elsewhere workers have no such page.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import selectors

from headrace.threads.stack_dump import dump_on_signal
from headrace.workers.progress_page import WorkerCounters
from headrace.workers.warden.stuck import DUMP_FILE

_wait = selectors.DefaultSelector.select  # each turn of each worker comes by here


class WatchedLoop(asyncio.SelectorEventLoop):
    def __init__(self, counters: WorkerCounters) -> None:
        if not counters.dump_file:
            counters.set_dump_file(_new_dump_file())
        self._counters = counters
        super().__init__(_CountedWaits(counters))

    def close(self) -> None:
        super().close()
        self._counters.turns += self._counters.turns % 2


class _CountedWaits(selectors.DefaultSelector):
    """Counts twice a turn: when the loop begins to wait (even), and when it goes on (odd)."""

    def __init__(self, counters: WorkerCounters) -> None:
        super().__init__()
        self._counters = counters
        self._turns = counters.turns  # even: no loop is there before this one

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        counters, turns = self._counters, self._turns
        counters.turns = turns
        ready = _wait(self, timeout)
        counters.turns = turns + 1
        self._turns = turns + 2
        return ready


def _new_dump_file() -> int:
    file = os.memfd_create(DUMP_FILE)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)  # the warden empties it before it asks
    dump_on_signal(file)
    return file
