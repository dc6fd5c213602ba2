"""A page that warden and workers share: how many steps each worker has taken, whether it has a task, whether its event
loop turns, and whether the warden is asleep.

Covers: the counters of each worker, and waking the warden. A worker counts by writing memory, so that telling its
progress costs no message and works while its channel is full. Does not cover: what follows from no progress
(workers.warden.watch, workers.warden.stuck), and when the warden sleeps (workers.warden.warden).
"""

from __future__ import annotations

import mmap
import os
import signal
from contextlib import suppress

_PLACES = 1024
_STEPS, _BUSY, _TURNS, _STACKS, _COUNTERS = range(5)
_IS_ASLEEP = _COUNTERS * _PLACES  # behind all places


class Place:
    """One worker's counters; inside the worker the only ones it touches."""

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
        """Of its event loop, counted twice: odd while it is at work, even while it waits or there is none."""
        return self._page[self._turns_at]

    @property
    def stacks(self) -> int:
        """The worker's descriptor of the file that it writes its stack to when asked; 0 where there is none."""
        return self._page[self._at + _STACKS]

    @turns.setter
    def turns(self, count: int) -> None:
        self._page[self._turns_at] = count

    def step(self) -> None:
        self._page[self._at + _STEPS] += 1

    def set_busy(self, is_busy: bool) -> None:
        """Counts as a step. The first task after a rest wakes the warden, which must not find it late."""
        self.step()
        self._page[self._at + _BUSY] = int(is_busy)
        if is_busy and self._page[_IS_ASLEEP]:
            with suppress(OSError):  # a worker that has become another user's may not: it is found a little later
                os.kill(os.getppid(), signal.SIGURG)  # ignored by every process that does not ask for it

    def set_stacks(self, descriptor: int) -> None:
        self._page[self._at + _STACKS] = descriptor


class ProgressPage:
    def __init__(self) -> None:
        self._page = memoryview(mmap.mmap(-1, 8 * (_IS_ASLEEP + 1))).cast("Q")
        self._free = list(range(_PLACES - 1, -1, -1))

    @property
    def is_asleep(self) -> bool:
        """Whether a worker that begins a task has to wake the warden."""
        return self._page[_IS_ASLEEP] != 0

    @is_asleep.setter
    def is_asleep(self, is_asleep: bool) -> None:
        self._page[_IS_ASLEEP] = int(is_asleep)

    def take(self) -> Place:
        """IndexError where a thousand workers live already."""
        number = self._free.pop()
        for counter in range(_COUNTERS):
            self._page[number * _COUNTERS + counter] = 0
        return Place(self._page, number)

    def give_back(self, place: Place) -> None:
        self._free.append(place.number)
