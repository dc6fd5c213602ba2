"""Keeps the counts of pictures of a file that grows: each range of ordinals is counted once, and again when it has
changed.

    the file's bytes ──► the same as at the last look: nothing is read
                     └─► changed: the marks of ranges that may have changed are read ──► other marks: counted anew

A range is final where all its interviews have their answers: no run asks those again, so its mark is not read again
within one run of the file. In others an interview may still end, in whatever order, or a failed one be asked again: the
sum of checksums in the mark tells. Another run of the file, which may have begun with rows dropped, has all marks read.

A look goes on for as long as its caller gives it, and the next one goes on where it ended; a file is looked at no more
than once a second. A few files are kept, and a few columns of each, the latest. Whenever a file has twice as many
interviews, it is looked at again how to count a column and which groups to split it by; where that comes out otherwise,
it is counted anew.
Does not cover: what is drawn of the counts (kept_charts).
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from headrace.errors import QueryTimeout
from headrace.results.plots.counted_columns import ColumnSplit, column_split, counted_column
from headrace.results.plots.kept_column import KeptColumn
from headrace.results.plots.range_counting import count_range
from headrace.results.reading.file_view import FileView, SharedFile
from headrace.store.contents import one_value
from headrace.store.run_file.details import read_counters
from headrace.store.run_file.range_digests import FileState, RangeMark, file_state, made_at, range_mark

_SMALLEST_RANGE = 8_192
_MOST_RANGES = 1_024
_MOST_FILES, _MOST_COLUMNS = 4, 48
_MOST_GROUPS = 5
_LOOK_EVERY_S, _LONGEST_STEP_S = 1.0, 1.0


class AskedPicture(msgspec.Struct, frozen=True):
    """A column, what it is split by, and the filter, as the user has written them; `filter` may be empty."""

    column: str
    by: str | None
    filter: str


class CountedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """`read` of the file's `total` interviews were looked at; all of them, as they are now, where `is_complete`."""

    kept: KeptColumn
    read: int
    total: int
    is_complete: bool


class KeptCounts:
    """The counts of a few files. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._files: OrderedDict[tuple[Path, int, float], _KeptFile] = OrderedDict()
        self._lock = threading.Lock()

    def look(
        self, path: Path, asked: list[AskedPicture], within_s: float, first_within_s: float = math.inf
    ) -> list[CountedPicture]:
        """Count for at most about so long, and return what there is. `first_within_s` is for the first look at a
        picture, of which a page wants some bars soon.
        """
        until = self._clock() + within_s
        file = SharedFile.checked(path)
        try:
            with file.reader.snapshot() as connection:
                made = made_at(connection)
            kept = self._file((path, path.stat().st_ino, made))
            with kept.turn(within_s):
                if not kept.has_counted(asked):
                    until = min(until, self._clock() + first_within_s)
                return kept.look(FileView(file=file, timeout_s=max(_LONGEST_STEP_S, within_s)), asked, until)
        finally:
            file.reader.close()

    def _file(self, key: tuple[Path, int, float]) -> _KeptFile:
        with self._lock:
            found = self._files.pop(key, None) or _KeptFile(self._clock)
            self._files[key] = found
            while len(self._files) > _MOST_FILES:
                self._files.popitem(last=False)
            return found


class _KeptFile:
    """One file: what its ranges were like at the last look, and the columns that were counted."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._columns: OrderedDict[AskedPicture, KeptColumn] = OrderedDict()
        self._marks: dict[int, RangeMark] = {}
        self._verified: set[int] = set()  # ranges whose marks are those of `_state`
        self._state: FileState | None = None
        self._run = -1
        self._size = _SMALLEST_RANGE
        self._last = -1
        self._total = 0
        self._looked_at = -_LOOK_EVERY_S

    @contextmanager
    def turn(self, within_s: float) -> Generator[None]:
        """One look at a time: another one at once would count the same."""
        if not self._lock.acquire(timeout=within_s + _LONGEST_STEP_S):
            raise QueryTimeout(within_s)
        try:
            yield
        finally:
            self._lock.release()

    def has_counted(self, asked: list[AskedPicture]) -> bool:
        """Whether there are bars of each of these already."""
        return all(each in self._columns for each in asked)

    def look(self, part: FileView, asked: list[AskedPicture], until: float) -> list[CountedPicture]:
        if self._state is None or self._clock() - self._looked_at >= _LOOK_EVERY_S:
            self._follow(part)
            self._looked_at = self._clock()
        views = [part if not each.filter else part.filtering(each.filter) for each in asked]
        columns = [self._column(view, each) for view, each in zip(views, asked, strict=True)]
        self._count(list(zip(views, columns, strict=True)), until)
        return [
            CountedPicture(kept=column, read=column.rows, total=self._total, is_complete=self._is_complete(column))
            for column in columns
        ]

    def _follow(self, part: FileView) -> None:
        """Find what may have changed since the last look."""
        path = part.file.reader.path
        state = file_state(path)  # before the read: what is committed meanwhile is seen by the next look
        if state == self._state:
            return
        with part.file.reader.snapshot(part.opened().clock()) as connection:
            run = one_value(connection, int | None, "SELECT max(number) FROM runs") or 0
            self._last = one_value(connection, int | None, "SELECT max(ordinal) FROM interviews") or 0
            self._total = int(read_counters(connection, path)["done"])
        if self._last // self._size >= _MOST_RANGES:
            while self._last // self._size >= _MOST_RANGES:
                self._size *= 2
            self._marks.clear()
            self._columns.clear()
        is_same_run = run == self._run
        self._verified = {at for at, mark in self._marks.items() if is_same_run and mark.is_final(self._size)}
        self._state, self._run = state, run
        for key, column in list(self._columns.items()):
            if not _holds_what_it_held(part, column):
                del self._columns[key]

    def _column(self, part: FileView, asked: AskedPicture) -> KeptColumn:
        found = self._columns.pop(asked, None)
        # The first rows say little about the rest: the axes are chosen anew whenever there are twice as many.
        if found is None or self._total >= 2 * found.decided_at:
            new = self._new_column(part, asked)
            found = found.decided_anew(new) if found is not None and found.is_like(new) else new
        self._columns[asked] = found  # the latest is the last
        while len(self._columns) > _MOST_COLUMNS:
            self._columns.popitem(last=False)
        return found

    def _new_column(self, part: FileView, asked: AskedPicture) -> KeptColumn:
        catalog = part.catalog()
        counted = counted_column(part, catalog.find(asked.column), self._last)
        split: ColumnSplit | None = None
        if asked.by is not None:
            split = column_split(part, catalog.find(asked.by), self._last, _MOST_GROUPS)
        return KeptColumn(counted, split, self._total)

    def _count(self, columns: list[tuple[FileView, KeptColumn]], until: float) -> None:
        """Bring the ranges up to date, from the first on, until the time is over; all columns side by side."""
        has_counted = False
        for number in range(self._last // self._size + 1):
            if has_counted and self._clock() >= until:  # a look brings a range at least, however late it begins
                return
            mark = self._mark(columns[0][0], number)
            first = number * self._size
            for view, column in columns:
                if column.mark_of(number) != mark:
                    has_counted = True
                    try:
                        counts = count_range(view, column.counted, column.split, first, first + self._size)
                    except QueryTimeout:
                        if not column.rows:
                            raise
                        return
                    column.put(number, mark, counts)

    def _mark(self, part: FileView, number: int) -> RangeMark:
        """The mark of a range as it is now. What is counted after it may be newer: the file's state is then another one
        at the next look, and so is the mark.
        """
        if number not in self._verified:
            first = number * self._size
            with part.file.reader.snapshot(part.opened().clock()) as connection:
                self._marks[number] = range_mark(connection, part.file.header, first, first + self._size)
            self._verified.add(number)
        return self._marks[number]

    def _is_complete(self, column: KeptColumn) -> bool:
        numbers = range(self._last // self._size + 1)
        return all(at in self._verified and column.mark_of(at) == self._marks[at] for at in numbers)


def _holds_what_it_held(part: FileView, column: KeptColumn) -> bool:
    """Whether a column's values are still of the kinds by which it was decided how to count them."""
    counted, split = column.counted, column.split
    columns = [counted.column] if split is None else [counted.column, split.column]
    return part.file.kept_kinds(columns) == [counted.kinds, *([] if split is None else [split.kinds])]
