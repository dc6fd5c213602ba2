"""The history of a memory budget, of any length in at most 512 points. Pure.

Time is seconds of running: the runs of a file stand one after the other, without the days between them. Each point is
an interval and keeps the highest memory in it. When there are too many points, intervals become twice as long:

    1 s each, 512 points ──► 2 s each, 256 points ──► ... up to 512 again ──► 4 s each, 256 points

so ten minutes have a point a second or two, and a week one in forty minutes at most. Run files and engine
files keep such a history (store.history). Does not cover: taking readings (memory.gauge), or drawing (charts).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace.memory.governor import Pressure

MOST_POINTS = 512


class HistoryPoint(NamedTuple):
    """An interval of running: `second` is where it begins, `seconds` how long it is.

    `run` is the number of the run in its file and `at` the wall clock's time, both of the interval's last reading, and
    so are `done`, the results in the file, and `stored_bytes`, the file's size. `memory_bytes` is the highest reading,
    `budget_bytes` what the budget was worth at that moment, `level` the highest pressure level.
    """

    second: int
    seconds: int
    run: int
    at: float
    memory_bytes: int
    budget_bytes: int
    level: Pressure
    done: int
    stored_bytes: int


class BoundedHistory:
    """Made of the points that are stored already; `add` is called in the order of time. With `is_stored` false, what is
    stored is something else, and the next changes replace it.
    """

    def __init__(self, stored: Iterable[HistoryPoint] = (), most: int = MOST_POINTS, *, is_stored: bool = True) -> None:
        self._most = most
        self._seconds = 1
        self._points: dict[int, HistoryPoint] = {}  # by second, in order
        self._changed: dict[int, None] = {}
        self._is_rewritten = False
        kept = sorted(stored)
        self._lengthen(max((point.seconds for point in kept), default=1))
        for point in kept:
            self.add(point)
        self._changed.clear()
        # Of points that are not as this class writes them, what is here is not what is stored.
        self._is_rewritten = not is_stored or self.points != kept

    @property
    def points(self) -> list[HistoryPoint]:
        """All points in order; there are at most as many as the history holds."""
        return list(self._points.values())

    @property
    def end(self) -> int:
        """The second behind the last point: where the next run begins."""
        return max((point.second + point.seconds for point in self._points.values()), default=0)

    def add(self, point: HistoryPoint) -> None:
        """Add a reading, or a shorter interval. The interval that it falls into keeps the highest memory."""
        second = point.second - point.second % self._seconds
        point = point._replace(second=second, seconds=self._seconds)
        before = self._points.get(second)
        self._points[second] = point if before is None else _both(before, point)
        self._changed[second] = None
        while len(self._points) > self._most:
            self._lengthen(2 * self._seconds)

    def take_changes(self) -> tuple[bool, list[HistoryPoint]]:
        """The points that changed since the last call, and whether they replace everything that is stored."""
        if self._is_rewritten:
            changes = True, self.points
        else:
            changes = False, [self._points[second] for second in self._changed]
        self._changed.clear()
        self._is_rewritten = False
        return changes

    def _lengthen(self, seconds: int) -> None:
        if seconds == self._seconds:
            return
        kept, self._points, self._seconds = self.points, {}, seconds
        for point in kept:
            self.add(point)
        self._is_rewritten = True


def _both(before: HistoryPoint, after: HistoryPoint) -> HistoryPoint:
    higher = max(before, after, key=lambda point: point.memory_bytes)
    return after._replace(
        memory_bytes=higher.memory_bytes,
        budget_bytes=higher.budget_bytes,
        level=max(before.level, after.level),
    )
