"""A page that warden and workers share: how many steps each worker has taken, whether it has a task, and whether the
warden is asleep.

Covers: two counters for each worker, and waking the warden. A worker counts by writing memory, so that telling its
progress costs no message and works while its channel is full. Does not cover: what follows from no progress
(execute.warden_watch), and when the warden sleeps (execute.warden).
"""

from __future__ import annotations

import mmap
import os
import signal
from contextlib import suppress

_PLACES = 1024
_IS_ASLEEP = 2 * _PLACES  # behind all places


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
        """Counts as a step. The first task after a rest wakes the warden, which must not find it late."""
        self.step()
        self._page[2 * self.number + 1] = int(is_busy)
        if is_busy and self._page[_IS_ASLEEP]:
            with suppress(OSError):  # a worker that has become another user's may not: it is found a little later
                os.kill(os.getppid(), signal.SIGURG)  # ignored by every process that does not ask for it


class ProgressPage:
    def __init__(self) -> None:
        self._page = memoryview(mmap.mmap(-1, 16 * (_PLACES + 1))).cast("Q")
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
        place = Place(self._page, self._free.pop())
        self._page[2 * place.number] = self._page[2 * place.number + 1] = 0
        return place

    def give_back(self, place: Place) -> None:
        self._free.append(place.number)
