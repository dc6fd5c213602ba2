"""How many interviews may be in flight. Covers: the window, and how memory pressure narrows it.

An interview holds its place from admission until its row is committed and, where someone listens, delivered: the
window bounds what a crash repeats and what RAM holds. Does not cover: which interview is next (schedule.cursors).
"""

from __future__ import annotations

from headrace.schedule.cursors import Cursors
from headrace.schedule.governor import Governor, Pressure

MOST_PER_CHUNK = 64
_MOST_BUFFER_BYTES = 16_000_000
_LEAST_BUFFER_BYTES = 250_000
_BUFFER_SHARE = 0.05


class Admission:
    """Events: `read_memory`, `released`, `stop`. Commands: `next_chunk` (ordinals to start), `buffer_bytes`."""

    def __init__(self, cursors: Cursors, governor: Governor, concurrency: int) -> None:
        self._cursors = cursors
        self._governor = governor
        self._concurrency = concurrency
        self._places = concurrency
        self._exhausted = False
        self.in_flight = 0

    @property
    def finished(self) -> bool:
        return self._exhausted and self.in_flight == 0

    @property
    def places(self) -> int:
        """How many may be in flight now."""
        if self._governor.pressure >= Pressure.PREEMPT:
            return 1  # work goes on, alone: pressure that never falls must not stop it for good
        return self._places

    @property
    def buffer_bytes(self) -> int:
        """How many bytes of finished rows may wait for the disk."""
        share = int(self._governor.limits.budget_bytes * _BUFFER_SHARE) >> (2 * self._governor.pressure)
        return max(_LEAST_BUFFER_BYTES, min(share, _MOST_BUFFER_BYTES))

    def read_memory(self, used_bytes: int, now_s: float) -> bool:
        """Take a reading; tells whether the level rose, which is the time to give memory back."""
        before = self._governor.pressure
        pressure = self._governor.observe(used_bytes, now_s)
        if pressure is Pressure.CALM:
            self._places = min(self._concurrency, self._places * 2)
        else:
            self._places = max(1, self._places // 2)
        return pressure > before

    def next_chunk(self) -> list[int]:
        free = min(self.places - self.in_flight, MOST_PER_CHUNK)
        if free <= 0 or self._exhausted:
            return []
        ordinals = self._cursors.take(free)
        self._exhausted = len(ordinals) < free
        self.in_flight += len(ordinals)
        return ordinals

    def released(self, count: int) -> None:
        self.in_flight -= count

    def stop(self) -> None:
        """Admit nothing more; what is in flight ends."""
        self._exhausted = True
