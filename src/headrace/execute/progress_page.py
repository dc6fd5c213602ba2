"""A page that warden and workers share: how many steps each worker has taken, whether it has a task, and whether its
event loop turns.

Covers: the counters of each worker. A worker counts by writing memory, so that telling its progress costs no message
and works while its channel is full. Does not cover: what follows from no progress (execute.warden_watch,
execute.stuck_workers).
"""

from __future__ import annotations

import mmap

_PLACES = 1024
_STEPS, _BUSY, _TURNS, _STACKS, _COUNTERS = range(5)


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
        self._page[self._at + _BUSY] = int(is_busy)

    def set_stacks(self, descriptor: int) -> None:
        self._page[self._at + _STACKS] = descriptor


class ProgressPage:
    def __init__(self) -> None:
        self._page = memoryview(mmap.mmap(-1, 8 * _COUNTERS * _PLACES)).cast("Q")
        self._free = list(range(_PLACES - 1, -1, -1))

    def take(self) -> Place:
        """IndexError where a thousand workers live already."""
        number = self._free.pop()
        for counter in range(_COUNTERS):
            self._page[number * _COUNTERS + counter] = 0
        return Place(self._page, number)

    def give_back(self, place: Place) -> None:
        self._free.append(place.number)
