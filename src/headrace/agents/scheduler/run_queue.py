"""Who is next. Covers: order by level and age, taking out. Does not cover: whether there is room
(agents.scheduler.host).

CRITICAL comes first. Of the others, the earliest comes first after a head start for each level above LOW: having waited
`aging_s` longer is worth one level. Their order never changes while they wait, so each lane is kept in order. Runs that
pressure has pushed out have lanes of their own: what keeps them out need not keep out those behind them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from headrace.agents.scheduler.scheduled_runs import NEVER_KEPT_OUT, WAITING, ScheduledRun
from headrace.agents.scheduler.skipped_runs import SkippedRuns
from headrace.priority import Priority

_LEVELS = len(Priority)
Entry: TypeAlias = tuple[float, int, ScheduledRun]  # when it came, age counted; then by arrival, which no two share


class RunQueue:
    """Nearly all come last and leave first. To come back, or to be cancelled, takes a search and a shift: some
    microseconds with ten thousand waiting.
    """

    def __init__(self, aging_s: float) -> None:
        self._lanes: list[deque[Entry]] = [deque() for _ in range(2 * _LEVELS)]
        self._head_starts = [(Priority.HIGH - level) * aging_s for level in Priority]
        self._head_starts[Priority.CRITICAL] = -math.inf
        self.total = 0
        self.skipped_runs = SkippedRuns()

    def count(self, level: Priority) -> int:
        return len(self._lanes[level]) + len(self._lanes[level + _LEVELS])

    def add(self, run: ScheduledRun) -> None:
        run.phase = WAITING
        lane, entry = self._lane(run), self._entry(run)
        if not lane or entry > lane[-1]:
            lane.append(entry)
        else:
            insort(lane, entry)
        self.total += 1
        self.skipped_runs.came(run)

    def remove(self, run: ScheduledRun) -> None:
        lane = self._lane(run)
        if lane[0][2] is run:
            lane.popleft()
        elif lane[-1][2] is run:
            lane.pop()
        else:
            del lane[bisect_left(lane, self._entry(run))]
        self.total -= 1
        self.skipped_runs.left(run)

    def heads(self) -> list[Entry]:
        """The first of each lane, in order: at most eight."""
        found = [lane[0] for lane in self._lanes if lane]
        found.sort()
        return found

    def of(self, level: Priority) -> Iterator[ScheduledRun]:
        """All of a level; those that were pushed out come last."""
        for lane in (self._lanes[level], self._lanes[level + _LEVELS]):
            yield from (entry[2] for entry in lane)

    def drain(self) -> list[ScheduledRun]:
        """Everything, at the end."""
        runs = [run for level in Priority for run in self.of(level)]
        for run in runs:
            self.remove(run)
        return runs

    def _lane(self, run: ScheduledRun) -> deque[Entry]:
        was_pushed_out = run.returns_below != NEVER_KEPT_OUT
        return self._lanes[run.priority + _LEVELS if was_pushed_out else run.priority]

    def _entry(self, run: ScheduledRun) -> Entry:
        return run.submitted_s + self._head_starts[run.priority], run.arrival, run
