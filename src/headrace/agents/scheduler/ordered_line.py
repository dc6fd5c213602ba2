"""`OrderedLine`: the runs of a queue that are in one order, in parts of a few hundred.

A run that enters last or leaves first costs the same however many wait; one that enters or leaves in between takes a
search and a shift within its part: some microseconds with a hundred thousand waiting. Does not cover: what the order is
(`run_queue`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from headrace.agents.scheduler.scheduled_runs import ScheduledRun

_PART = 512
Entry: TypeAlias = tuple[float, int, ScheduledRun]  # `queued_s` with its head start; then the arrival, which is unique


class OrderedLine:
    """`first` is the first entry, None where there is none."""

    def __init__(self) -> None:
        self._parts: list[list[Entry]] = []  # none of them empty
        self.first: Entry | None = None

    def __iter__(self) -> Iterator[Entry]:
        return chain.from_iterable(self._parts)

    def __reversed__(self) -> Iterator[Entry]:
        return (entry for part in reversed(self._parts) for entry in reversed(part))

    def add(self, entry: Entry) -> None:
        parts = self._parts
        if not parts:
            parts.append([entry])
        elif entry > parts[-1][-1]:
            if len(parts[-1]) < _PART:
                parts[-1].append(entry)
            else:
                parts.append([entry])
        else:
            self._insert(entry)
        self.first = parts[0][0]

    def remove(self, entry: Entry) -> None:
        parts = self._parts
        if parts[0][0][2] is entry[2]:  # nearly all leave first
            number, place = 0, 0
        else:
            number = bisect_left(parts, entry, key=_last)
            place = bisect_left(parts[number], entry)
        del parts[number][place]
        if not parts[number]:
            del parts[number]
        self.first = parts[0][0] if parts else None

    def _insert(self, entry: Entry) -> None:
        number = bisect_left(self._parts, entry, key=_last)
        part = self._parts[number]
        insort(part, entry)
        if len(part) > 2 * _PART:
            self._parts[number : number + 1] = [part[:_PART], part[_PART:]]


def _last(part: list[Entry]) -> Entry:
    return part[-1]
