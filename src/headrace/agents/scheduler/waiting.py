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

from headrace.agents.scheduler.passed_over import PassedOver
from headrace.agents.scheduler.task_states import NEVER_KEPT_OUT, WAITING, Task
from headrace.priority import Priority

_LEVELS = len(Priority)
Entry: TypeAlias = tuple[float, int, Task]  # when it came, age counted; then by arrival, which no two share


class Waiting:
    """Nearly all come last and leave first. To come back, or to be cancelled, takes a search and a shift: some
    microseconds with ten thousand waiting.
    """

    def __init__(self, aging_s: float) -> None:
        self._lanes: list[deque[Entry]] = [deque() for _ in range(2 * _LEVELS)]
        self._head_starts = [(Priority.HIGH - level) * aging_s for level in Priority]
        self._head_starts[Priority.CRITICAL] = -math.inf
        self.total = 0
        self.passed_over = PassedOver()

    def count(self, level: Priority) -> int:
        return len(self._lanes[level]) + len(self._lanes[level + _LEVELS])

    def add(self, task: Task) -> None:
        task.state = WAITING
        lane, entry = self._lane(task), self._entry(task)
        if not lane or entry > lane[-1]:
            lane.append(entry)
        else:
            insort(lane, entry)
        self.total += 1
        self.passed_over.came(task)

    def remove(self, task: Task) -> None:
        lane = self._lane(task)
        if lane[0][2] is task:
            lane.popleft()
        elif lane[-1][2] is task:
            lane.pop()
        else:
            del lane[bisect_left(lane, self._entry(task))]
        self.total -= 1
        self.passed_over.left(task)

    def heads(self) -> list[Entry]:
        """The first of each lane, in order: at most eight."""
        found = [lane[0] for lane in self._lanes if lane]
        found.sort()
        return found

    def of(self, level: Priority) -> Iterator[Task]:
        """All of a level; those that were pushed out come last."""
        for lane in (self._lanes[level], self._lanes[level + _LEVELS]):
            yield from (entry[2] for entry in lane)

    def drain(self) -> list[Task]:
        """Everything, at the end."""
        tasks = [task for level in Priority for task in self.of(level)]
        for task in tasks:
            self.remove(task)
        return tasks

    def _lane(self, task: Task) -> deque[Entry]:
        was_pushed_out = task.returns_below != NEVER_KEPT_OUT
        return self._lanes[task.priority + _LEVELS if was_pushed_out else task.priority]

    def _entry(self, task: Task) -> Entry:
        return task.submitted_s + self._head_starts[task.priority], task.arrival, task
