"""Shared memory in which each worker counts its progress, and from which the warden reads it.

    one worker: steps | has it a task | turns of its event loop | descriptor of its stack dump      ... 1,024 workers
    at the end: whether the warden sleeps, so that a worker that begins a task wakes it by SIGURG

A worker counts by writing memory, so that reporting progress costs no message and works while its channel is full.
Does not cover: what follows where there is no progress (workers.warden.watch, workers.warden.stuck), and when the
warden sleeps (workers.warden.watchdog).
"""

from __future__ import annotations

import mmap
import os
import signal
from contextlib import suppress

_MOST_WORKERS = 1024
_STEPS, _BUSY, _TURNS, _STACKS, _COUNTERS = range(5)
_IS_ASLEEP = _COUNTERS * _MOST_WORKERS  # behind all counters


class WorkerCounters:
    """One worker's counters. The worker writes them, the warden reads them."""

    def __init__(self, page: memoryview, number: int) -> None:
        self._page = page
        self._at = number * _COUNTERS
        self._turns_at = self._at + _TURNS
        self.number = number

    @property
    def steps(self) -> int:
        return self._page[self._at + _STEPS]

    @property
    def is_busy(self) -> bool:
        return self._page[self._at + _BUSY] != 0

    @property
    def turns(self) -> int:
        """Turns of its event loop, counted twice: odd while the loop works, even while it waits or there is none."""
        return self._page[self._turns_at]

    @property
    def dump_file(self) -> int:
        """The descriptor, in the worker, of the file that gets its stack (workers.watched_loop); 0 for none."""
        return self._page[self._at + _STACKS]

    @turns.setter
    def turns(self, count: int) -> None:
        self._page[self._turns_at] = count

    def step(self) -> None:
        self._page[self._at + _STEPS] += 1

    def set_busy(self, is_busy: bool) -> None:
        """Note that a task begins or ends, which is a step; wake a warden that sleeps when one begins."""
        self.step()
        self._page[self._at + _BUSY] = int(is_busy)
        if is_busy and self._page[_IS_ASLEEP]:
            with suppress(OSError):  # a worker that has become another user's may not: the warden looks a little later
                os.kill(os.getppid(), signal.SIGURG)  # ignored by every process that does not ask for it

    def set_dump_file(self, descriptor: int) -> None:
        self._page[self._at + _STACKS] = descriptor


class ProgressPage:
    """The whole page, made by the warden before it forks: which counters are free, and whether the warden sleeps."""

    def __init__(self) -> None:
        self._page = memoryview(mmap.mmap(-1, 8 * (_IS_ASLEEP + 1))).cast("Q")
        self._free = list(range(_MOST_WORKERS - 1, -1, -1))

    @property
    def is_asleep(self) -> bool:
        """Whether a worker that begins a task has to wake the warden."""
        return self._page[_IS_ASLEEP] != 0

    @is_asleep.setter
    def is_asleep(self, is_asleep: bool) -> None:
        self._page[_IS_ASLEEP] = int(is_asleep)

    def take(self) -> WorkerCounters:
        """Return counters for a new worker, all 0; an IndexError where 1,024 workers live already."""
        number = self._free.pop()
        for counter in range(_COUNTERS):
            self._page[number * _COUNTERS + counter] = 0
        return WorkerCounters(self._page, number)

    def give_back(self, counters: WorkerCounters) -> None:
        self._free.append(counters.number)
