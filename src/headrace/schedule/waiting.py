"""Who is next. Covers: order by level and age, taking out. Does not cover: whether there is room (schedule.host).

CRITICAL comes first. Of the others, the earliest comes first after a head start for each level above LOW: having waited
`aging_s` longer is worth one level. Their order never changes while they wait, so a heap for each lane is enough.
Runs that pressure has pushed out have lanes of their own: what keeps them out need not keep out those behind them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import TypeAlias

from headrace.schedule.passed_over import PassedOver
from headrace.schedule.priority import Priority
from headrace.schedule.tasks import NEVER_KEPT_OUT, State, Task

_DEAD_ALLOWED = 64
_LEVELS = len(Priority)
_Entry: TypeAlias = tuple[float, int, int, Task]  # when it came, age counted; then by arrival; then its ticket


class Waiting:
    """Taking out is lazy: a dead entry leaves when it reaches the head, or when the dead outnumber the living."""

    def __init__(self, aging_s: float) -> None:
        self._lanes = [_Lane() for _ in range(2 * _LEVELS)]
        self._head_starts = [(Priority.HIGH - level) * aging_s for level in Priority]
        self._head_starts[Priority.CRITICAL] = -math.inf
        self.total = 0
        self._tickets = 0
        self.passed_over = PassedOver()

    def count(self, level: Priority) -> int:
        return self._lanes[level].count + self._lanes[level + _LEVELS].count

    def add(self, task: Task) -> None:
        self._tickets += 1
        task.state, task.ticket = State.WAITING, self._tickets
        aged_s = task.submitted_s + self._head_starts[task.priority]
        self._lane(task).add((aged_s, task.arrival, task.ticket, task))
        self.total += 1
        if task.priority is Priority.LOW:
            self.passed_over.came(task)

    def remove(self, task: Task) -> None:
        task.ticket = 0
        self._lane(task).note_left()
        self.total -= 1
        if task.priority is Priority.LOW:
            self.passed_over.left(task)

    def heads(self) -> list[Task]:
        """The first of each lane, in order: at most eight."""
        found = [lane.entries[0] for lane in self._lanes if lane.entries]
        if len(found) > 1:
            found.sort()
        return [entry[3] for entry in found]

    def of(self, level: Priority) -> Iterator[Task]:
        """All of a level, in no order."""
        for lane in (self._lanes[level], self._lanes[level + _LEVELS]):
            yield from (entry[3] for entry in lane.entries if entry[2] == entry[3].ticket)

    def drain(self) -> list[Task]:
        """Everything, in no order, at the end."""
        tasks = [task for level in Priority for task in self.of(level)]
        for task in tasks:
            self.remove(task)
        return tasks

    def _lane(self, task: Task) -> _Lane:
        was_pushed_out = task.returns_below != NEVER_KEPT_OUT
        return self._lanes[task.priority + _LEVELS if was_pushed_out else task.priority]


class _Lane:
    """A heap whose head is alive."""

    __slots__ = ("count", "entries")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.count = 0

    def add(self, entry: _Entry) -> None:
        heapq.heappush(self.entries, entry)
        self.count += 1

    def note_left(self) -> None:
        """One of it has no ticket any more."""
        self.count -= 1
        entries = self.entries
        while entries and entries[0][2] != entries[0][3].ticket:
            heapq.heappop(entries)
        if len(entries) > 2 * self.count + _DEAD_ALLOWED:
            entries[:] = [entry for entry in entries if entry[2] == entry[3].ticket]
            heapq.heapify(entries)
