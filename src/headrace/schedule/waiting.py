"""Who is next. Covers: order by level and age, taking out. Does not cover: whether there is room (schedule.host).

CRITICAL comes first. Of the others, the earliest comes first after a head start for each level above LOW: having waited
`aging_s` longer is worth one level. Their order never changes while they wait, so a heap for each level is enough.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TypeAlias

from headrace.schedule.passed_over import PassedOver
from headrace.schedule.priority import Priority
from headrace.schedule.tasks import State, Task

_DEAD_ALLOWED = 64
_AGING = (Priority.HIGH, Priority.NORMAL, Priority.LOW)
_Entry: TypeAlias = tuple[float, int, int, Task]  # when it came, age counted; then by arrival; then its ticket


class Waiting:
    """Taking out is lazy: a dead entry leaves when it reaches the head, or when the dead outnumber the living."""

    def __init__(self, aging_s: float) -> None:
        self._lanes: dict[Priority, list[_Entry]] = {level: [] for level in reversed(Priority)}
        self._head_starts = {level: (Priority.HIGH - level) * aging_s for level in Priority}
        self._counts = dict.fromkeys(Priority, 0)
        self._tickets = self._total = 0
        self.passed_over = PassedOver()

    def __len__(self) -> int:
        return self._total

    def count(self, level: Priority) -> int:
        return self._counts[level]

    def add(self, task: Task) -> None:
        self._tickets += 1
        task.state, task.ticket = State.WAITING, self._tickets
        aged_s = task.submitted_s + self._head_starts[task.priority]
        heapq.heappush(self._lanes[task.priority], (aged_s, task.arrival, task.ticket, task))
        self._counts[task.priority] += 1
        self._total += 1
        if task.priority is Priority.LOW:
            self.passed_over.came(task)

    def remove(self, task: Task) -> None:
        task.ticket = 0
        self._counts[task.priority] -= 1
        self._total -= 1
        if task.priority is Priority.LOW:
            self.passed_over.left(task)
        lane = self._lanes[task.priority]
        if len(lane) > 2 * self._counts[task.priority] + _DEAD_ALLOWED:
            lane[:] = [entry for entry in lane if entry[2] == entry[3].ticket]
            heapq.heapify(lane)

    def heads(self) -> list[Task]:
        """The first of each level, in order: at most four."""
        found = [self._head(level) for level in _AGING if self._counts[level]]
        if len(found) > 1:
            found.sort()
        tasks = [entry[3] for entry in found]
        return [self._head(Priority.CRITICAL)[3], *tasks] if self._counts[Priority.CRITICAL] else tasks

    def of(self, level: Priority) -> Iterator[Task]:
        """All of a level, in no order."""
        return (entry[3] for entry in self._lanes[level] if entry[2] == entry[3].ticket)

    def drain(self) -> list[Task]:
        """Everything, in no order, at the end."""
        tasks = [task for level in Priority for task in self.of(level)]
        for task in tasks:
            self.remove(task)
        return tasks

    def _head(self, level: Priority) -> _Entry:
        """Of a level that has one."""
        lane = self._lanes[level]
        while lane[0][2] != lane[0][3].ticket:
            heapq.heappop(lane)
        return lane[0]
