"""The memory history of a run file: the table `memory_history`, at most 512 rows for all runs of the file.

    run loop: HistoryWriter.note ──► readings ──► journal's thread: HistoryWriter.write, with a commit of its rows

A run writes it once a second with whatever it commits, and every few seconds where it commits nothing: a kill costs no
more than that. Does not cover: how it stays bounded (memory.bounded_history), or when it is written (run_journal).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from headrace.memory.bounded_history import MOST_POINTS, BoundedHistory, HistoryPoint
from headrace.memory.governor import Pressure
from headrace.store.contents import UNREADABLE, damaged, raw_rows
from headrace.store.run_file.checksums import history_checksum

_MOST_READINGS = 1_000  # between two writes; ten a second are taken, more where rows are committed quickly
_MOST_ROWS = 4 * MOST_POINTS
_LARGEST = 2**60
_TABLE = "memory_history"
_COLUMNS = f"{', '.join(HistoryPoint._fields)}, checksum"
_INSERT = f"INSERT OR REPLACE INTO {_TABLE} VALUES({', '.join('?' * (len(HistoryPoint._fields) + 1))})"


class HistoryWriter:
    """Adds one run's readings to the history of its file. `note` is called on the run loop, `write` by the journal."""

    def __init__(self, connection: apsw.Connection, run: int) -> None:
        self._connection = connection
        self._run = run
        stored = list(_points(connection))
        # A damaged picture of the past must not keep a run from going on: damaged points are dropped.
        whole = [point for point in stored if point is not None]
        self._history = BoundedHistory(whole, is_stored=len(whole) == len(stored))
        self._zero_s = time.monotonic() - self._history.end
        self._readings: deque[tuple[float, int, int, Pressure]] = deque(maxlen=_MOST_READINGS)

    def note(self, used_bytes: int, budget_bytes: int, level: Pressure) -> None:
        self._readings.append((time.monotonic(), used_bytes, budget_bytes, level))

    def write(self, at: float, done: int) -> None:
        """Write the readings since the last call, inside the caller's transaction."""
        size_bytes: int = self._connection.pragma("page_count") * self._connection.pragma("page_size")
        while self._readings:
            read_s, used_bytes, budget_bytes, level = self._readings.popleft()
            second = int(read_s - self._zero_s)
            self._history.add(HistoryPoint(second, 1, self._run, at, used_bytes, budget_bytes, level, done, size_bytes))
        replaces_all, changed = self._history.take_changes()
        if replaces_all:
            self._connection.execute(f"DELETE FROM {_TABLE}")
        rows = [(*point, history_checksum(point)) for point in changed]
        self._connection.executemany(_INSERT, rows)


def read_history(connection: apsw.Connection, path: Path) -> list[HistoryPoint]:
    """The points in order, at most some hundred; none in a file from before there was a history. Refused where one is
    not as it was written.
    """
    points = list(_points(connection))
    whole = [point for point in points if point is not None]
    if len(whole) < len(points):
        raise damaged(path, "its memory history is not as it was written")
    return whole


def has_history(connection: apsw.Connection) -> bool:
    return bool(connection.execute(f"SELECT count(*) FROM sqlite_schema WHERE name = '{_TABLE}'").get)


def damaged_points(connection: apsw.Connection) -> int:
    """How many points are not as they were written."""
    return sum(point is None for point in _points(connection))


def _points(connection: apsw.Connection) -> Iterator[HistoryPoint | None]:
    """The stored points; None for one that is damaged."""
    if not has_history(connection):
        return
    for row in raw_rows(connection, f"SELECT {_COLUMNS} FROM {_TABLE} ORDER BY second LIMIT ?", (_MOST_ROWS,)):
        try:
            yield _point(row)
        except UNREADABLE:
            yield None


def _point(row: tuple[Any, ...]) -> HistoryPoint:
    point = msgspec.convert(row[:-1], HistoryPoint)
    numbers = (point.second, point.run, point.memory_bytes, point.budget_bytes, point.done, point.stored_bytes)
    is_interval = point.seconds > 0 and point.seconds.bit_count() == 1 and point.second % point.seconds == 0
    is_sound = all(0 <= number <= _LARGEST for number in (*numbers, point.seconds)) and math.isfinite(point.at)
    if not is_interval or not is_sound or row[-1] != history_checksum(point):
        raise ValueError("a point of the memory history that no run writes")
    return point
