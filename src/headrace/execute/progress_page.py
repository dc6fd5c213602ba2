"""A page that warden and workers share: how many steps each worker has taken, and whether it has a task.

Covers: two counters for each worker. A worker counts by writing memory, so that telling its progress costs no message
and works while its channel is full. Does not cover: what follows from no progress (execute.warden_watch).
"""

from __future__ import annotations

import mmap

_PLACES = 1024


class Place:
    """One worker's counters; inside the worker the only ones it touches."""

    def __init__(self, page: memoryview, number: int) -> None:
        self._page = page
        self.number = number

    @property
    def steps(self) -> int:
        return self._page[2 * self.number]

    @property
    def is_busy(self) -> bool:
        return self._page[2 * self.number + 1] != 0

    def step(self) -> None:
        self._page[2 * self.number] += 1

    def set_busy(self, is_busy: bool) -> None:
        self._page[2 * self.number + 1] = int(is_busy)


class ProgressPage:
    def __init__(self) -> None:
        self._page = memoryview(mmap.mmap(-1, 16 * _PLACES)).cast("Q")
        self._free = list(range(_PLACES - 1, -1, -1))

    def take(self) -> Place:
        """IndexError where a thousand workers live already."""
        place = Place(self._page, self._free.pop())
        self._page[2 * place.number] = self._page[2 * place.number + 1] = 0
        return place

    def give_back(self, place: Place) -> None:
        self._free.append(place.number)
