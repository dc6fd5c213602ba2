"""`CallLine`: the calls that wait for an endpoint, in the order in which they go out. Pure.

The rule. Within a level of priority, first come, first served. Of the levels, CRITICAL comes first. Of the others, the
one whose wait began first, after a head start for each level: having waited `aging_s` longer is worth one level. A
level's wait begins when its first call comes, and again with each turn that it gets. So a survey with a thousand calls
in line, which waits for itself, does not grow old in front of an agent run that asks now; and beside agents that never
stop asking, a NORMAL survey still has one turn every `aging_s`, and a LOW one every second `aging_s`.

A level that has waited long enough to stand beside HIGH is aged: what is reserved for HIGH is for it as well.

Does not cover: whether a call may go out now, and what is reserved (models.endpoint.endpoint).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Generic, TypeVar

from headrace.priority import Priority

Call = TypeVar("Call")


class CallLine(Generic[Call]):
    """A call enters at the end of its level and leaves from anywhere, each in constant time. `total` is how many wait:
    bounded by the windows of surveys and by how many agent runs there are.
    """

    def __init__(self, aging_s: float) -> None:
        # Each call with when it came. A plain dict that is emptied from its front looks at every gap again.
        self._calls: list[OrderedDict[Call, float]] = [OrderedDict() for _ in Priority]
        self._levels: list[Priority] = []  # those with calls, highest first: nearly always one
        self._turn_s = [-math.inf for _ in Priority]  # when each level had its last turn
        self._head_starts = [(Priority.HIGH - level) * aging_s for level in Priority]
        self._head_starts[Priority.CRITICAL] = -math.inf
        self.total = 0

    def add(self, call: Call, priority: Priority, now_s: float) -> None:
        calls = self._calls[priority]
        if not calls:
            self._levels.append(priority)
            self._levels.sort(reverse=True)
        calls[call] = now_s
        self.total += 1

    def first(self) -> tuple[Priority, Call]:
        """The call whose turn is next, and its level. The line must not be empty."""
        levels = self._levels
        # `min` takes the first of equals, which is the highest.
        level = levels[0] if len(levels) == 1 else min(levels, key=self._aged_s)
        return level, next(iter(self._calls[level]))

    def is_aged(self, level: Priority, now_s: float) -> bool:
        """Whether the first call of this level has waited long enough to stand beside HIGH."""
        return now_s >= self._aged_s(level)

    def give_turn(self, level: Priority, now_s: float) -> None:
        """Take out the first call of a level: its turn has come."""
        calls = self._calls[level]
        calls.popitem(last=False)
        self._turn_s[level] = now_s
        self.total -= 1
        if not calls:
            self._levels.remove(level)

    def remove(self, call: Call, priority: Priority) -> None:
        """Take a call out that needs no turn any more; nothing where it has left."""
        calls = self._calls[priority]
        if calls.pop(call, None) is not None:
            self.total -= 1
            if not calls:
                self._levels.remove(priority)

    def waiting(self) -> list[Call]:
        """All calls that wait, highest level first."""
        return [call for level in self._levels for call in self._calls[level]]

    def _aged_s(self, level: Priority) -> float:
        """When the first call of this level counts as much as one of HIGH that comes at that moment."""
        came_s = next(iter(self._calls[level].values()))
        return max(came_s, self._turn_s[level]) + self._head_starts[level]
