"""Who is next. Covers: order by level and age, taking out. Does not cover: whether there is room (schedule.host).

CRITICAL comes first. Of the others, the earliest comes first after a head start for each level above LOW: having waited
`aging_s` longer is worth one level. Their order never changes while they wait, so a heap for each level is enough.
"""

from __future__ import annotations

import heapq

from headrace.schedule.priority import Priority
from headrace.schedule.tasks import State, Task

_DEAD_ALLOWED = 64


class Waiting:
    """Taking out is lazy: a dead entry leaves when it reaches the head, or when the dead outnumber the living."""

    def __init__(self, aging_s: float) -> None:
        self._aging_s = aging_s
        self._lanes: dict[Priority, list[tuple[float, int, int, Task]]] = {level: [] for level in reversed(Priority)}
        self._counts = dict.fromkeys(Priority, 0)
        self._tickets = 0

    def __len__(self) -> int:
        return sum(self._counts.values())

    def count(self, level: Priority) -> int:
        return self._counts[level]

    def add(self, task: Task) -> None:
        self._tickets += 1
        task.state, task.ticket = State.WAITING, self._tickets
        heapq.heappush(self._lanes[task.priority], (task.submitted_s, task.arrival, task.ticket, task))
        self._counts[task.priority] += 1

    def remove(self, task: Task) -> None:
        task.ticket = 0
        self._counts[task.priority] -= 1
        lane = self._lanes[task.priority]
        if len(lane) > 2 * self._counts[task.priority] + _DEAD_ALLOWED:
            lane[:] = [entry for entry in lane if entry[2] == entry[3].ticket]
            heapq.heapify(lane)

    def heads(self) -> list[Task]:
        """The first of each level, in order: at most four."""
        found = [head for level in self._lanes if (head := self._head(level)) is not None]
        if len(found) > 1:
            found.sort(key=self.place)
        return found

    def place(self, task: Task) -> tuple[bool, float, int]:
        """Less is earlier."""
        behind_s = (Priority.HIGH - task.priority) * self._aging_s
        return task.priority is not Priority.CRITICAL, task.submitted_s + behind_s, task.arrival

    def drain(self) -> list[Task]:
        """Everything, in no order, at the end."""
        tasks = [entry[3] for lane in self._lanes.values() for entry in lane if entry[2] == entry[3].ticket]
        for task in tasks:
            self.remove(task)
        return tasks

    def _head(self, level: Priority) -> Task | None:
        if not self._counts[level]:
            return None
        lane = self._lanes[level]
        while lane[0][2] != lane[0][3].ticket:
            heapq.heappop(lane)
        return lane[0][3]
