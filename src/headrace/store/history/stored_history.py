"""The memory history of a run file or an engine file: the table `memory_history`, at most 512 rows for all its runs.

    on the loop: HistoryWriter.note ──► readings ──► HistoryWriter.writes: statements, for the next commit of the file

It is written once a second with whatever is committed, and every few seconds where nothing is: a kill costs no more
than that. Does not cover: how it stays bounded (memory.bounded_history), or when it is written.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import apsw
import msgspec

from headrace.memory.bounded_history import MOST_POINTS, BoundedHistory, HistoryPoint
from headrace.memory.governor import Pressure
from headrace.store.contents import UNREADABLE, damaged, one_value, raw_rows
from headrace.store.verification import Verification
from headrace.survey.values import SqlValue

NOTED_EVERY_S, IDLE_NOTED_EVERY_S = 1.0, 5.0
# A file from before it gets it when it is opened to be written; older versions take it for a table of the user's own.
MEMORY_HISTORY = """
CREATE TABLE memory_history(second INTEGER PRIMARY KEY, seconds INTEGER NOT NULL, run INTEGER NOT NULL,
                            at REAL NOT NULL, memory_bytes INTEGER NOT NULL, budget_bytes INTEGER NOT NULL,
                            level INTEGER NOT NULL, done INTEGER NOT NULL, stored_bytes INTEGER NOT NULL, checksum);
"""
HistoryWrite: TypeAlias = tuple[str, tuple[SqlValue, ...]]  # a statement with its bindings
_MOST_READINGS = 1_000  # between two writes; ten a second are taken, more where rows are committed quickly
_MOST_ROWS = 4 * MOST_POINTS
_LARGEST = 2**60
_TABLE = "memory_history"
_COLUMNS = f"{', '.join(HistoryPoint._fields)}, checksum"
_INSERT = f"INSERT OR REPLACE INTO {_TABLE} VALUES({', '.join('?' * (len(HistoryPoint._fields) + 1))})"


class HistoryWriter:
    """Adds one run's readings, or one engine's, to the history of its file. `run` is its number; without one, the next
    after the last in the history.
    """

    def __init__(self, connection: apsw.Connection, run: int | None = None) -> None:
        stored = list(_points(connection))
        # A damaged picture of the past must not keep a run from going on: damaged points are dropped.
        whole = [point for point in stored if point is not None]
        self._history = BoundedHistory(whole, is_stored=len(whole) == len(stored))
        self._run = run if run is not None else 1 + max((point.run for point in whole), default=0)
        self.done_before = max((point.done for point in whole), default=0)
        self._zero_s = time.monotonic() - self._history.end
        self._readings: deque[tuple[float, int, int, Pressure]] = deque(maxlen=_MOST_READINGS)

    def note(self, used_bytes: int, budget_bytes: int, level: Pressure) -> None:
        self._readings.append((time.monotonic(), used_bytes, budget_bytes, level))

    def writes(self, at: float, done: int, stored_bytes: int) -> list[HistoryWrite]:
        """The statements that write the readings since the last call; `at` is the wall clock's time now."""
        now_s = time.monotonic()
        while self._readings:
            read_s, used_bytes, budget_bytes, level = self._readings.popleft()
            second, read_at = int(read_s - self._zero_s), at - (now_s - read_s)
            self._history.add(
                HistoryPoint(second, 1, self._run, read_at, used_bytes, budget_bytes, level, done, stored_bytes)
            )
        replaces_all, changed = self._history.take_changes()
        writes: list[HistoryWrite] = [(f"DELETE FROM {_TABLE}", ())] if replaces_all else []
        return [*writes, *((_INSERT, (*point, _checksum(point))) for point in changed)]


def stored_bytes(connection: apsw.Connection) -> int:
    """The size of the file that a connection has open."""
    return connection.pragma("page_count") * connection.pragma("page_size")


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


def add_history(connection: apsw.Connection) -> None:
    """Make the table, inside the caller's transaction."""
    connection.execute(MEMORY_HISTORY)


def highest_memory_bytes(connection: apsw.Connection) -> int | None:
    """The most that any run of the file took; None where no history says so."""
    if not has_history(connection):
        return None
    return one_value(connection, int | None, f"SELECT max(memory_bytes) FROM {_TABLE}")


def check_history(connection: apsw.Connection, found: Verification) -> None:
    """Note how many points are not as they were written."""
    if lost := sum(point is None for point in _points(connection)):
        found.note("memory history", f"{lost} points are not as they were written; runs and results do not need them")


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
    if not is_interval or not is_sound or row[-1] != _checksum(point):
        raise ValueError("a point of the memory history that no run writes")
    return point


def _checksum(point: HistoryPoint) -> int:
    return crc32(msgspec.msgpack.encode(point))
