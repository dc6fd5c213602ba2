"""What a table's verbs make of its rows: rows filtered, with other columns, sorted, or a part of them.

    source ──► Filtered ──► Chosen ──► Sorted ──► Windowed      each reads the one before it, row by row

Sorted rows, and rows counted from the end, go through a temporary file. Does not cover: the verbs (table), or names in
expressions (column_names).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from typing import Any, TypeAlias

import msgspec

from headrace.expressions import is_true
from headrace.results.columns.records import drawn
from headrace.results.columns.value_keys import SortKeys, sort_keys
from headrace.results.tables.column_names import RowGetter
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.queries.query_clock import QueryClock
from headrace.store.scratch.scratch_table import ScratchTable, pack_row

RowKey: TypeAlias = Callable[[int, Values], SortKeys]  # of the row's place and the row


class Filtered(TableRows):
    """The rows for which `condition` is true."""

    def __init__(self, source: TableRows, condition: RowGetter) -> None:
        super().__init__(source.path, source.columns)
        self.holds_read = source.holds_read
        self._source, self._condition = source, condition

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        condition = self._condition
        with self._source.reading(clock) as rows:
            yield (row for row in rows if is_true(condition(row)))


class Chosen(TableRows):
    """The rows with other columns: those at some places, or what functions of the row give."""

    def __init__(self, source: TableRows, columns: list[str], getters: Sequence[int | RowGetter]) -> None:
        super().__init__(source.path, columns)
        self.holds_read, self.is_counted = source.holds_read, source.is_counted
        self._source = source
        self._getters = [_at(each) if isinstance(each, int) else each for each in getters]

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        getters = self._getters
        with self._source.reading(clock) as rows:
            yield (tuple([get(row) for get in getters]) for row in rows)

    def count(self, clock: QueryClock) -> int:
        return self._source.count(clock)


class Sorted(TableRows):
    """The rows in the order of these keys, each with whether it is descending; equal rows stay as they were."""

    is_counted = True

    def __init__(self, source: TableRows, keys: Iterable[tuple[RowKey, bool]]) -> None:
        super().__init__(source.path, source.columns)
        self._source, self._keys = source, list(keys)

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        width, keys = len(self.columns), [key for key, _ in self._keys]
        with ScratchTable(width + 2 * len(keys), clock) as table:
            with self._source.reading(clock) as rows:
                table.add(
                    (*pack_row(row), *chain.from_iterable(key(place, row) for key in keys))
                    for place, row in enumerate(rows)
                )
            downs = [is_down for _, is_down in self._keys for _ in range(2)]
            order = [f"c{width + number}{' DESC' * is_down}" for number, is_down in enumerate(downs)]
            yield (row[:width] for row in table.rows(order))

    def count(self, clock: QueryClock) -> int:
        return self._source.count(clock)


def by_column(place: int) -> RowKey:
    """A key that sorts by a column as results are sorted: None first, numbers, texts, then lists."""
    return lambda _, row: sort_keys(row[place])


def by_chance(seed: str) -> RowKey:
    """A key that sorts into an order that looks random: the same for the same seed and the same rows before it."""
    return lambda place, _: (drawn(seed, place), None)


class RowRange(msgspec.Struct, frozen=True):
    """Which rows: from `start` up to `stop`, counted from the end where negative; or a part `fraction` of them."""

    start: int = 0
    stop: int | None = None
    fraction: float | None = None

    @property
    def needs_count(self) -> bool:
        return self.fraction is not None or self.start < 0 or (self.stop is not None and self.stop < 0)

    def bounds(self, count: int) -> tuple[int, int]:
        """The window among `count` rows."""
        if self.fraction is not None:
            return 0, math.floor(count * self.fraction)
        start, stop, _ = slice(self.start, self.stop).indices(count)
        return start, max(start, stop)


class Windowed(TableRows):
    """The rows in a window. Where it depends on their number they are put into a temporary file, which counts them."""

    def __init__(self, source: TableRows, window: RowRange) -> None:
        super().__init__(source.path, source.columns)
        self.holds_read = source.holds_read and not window.needs_count
        self.is_counted = source.is_counted or window.needs_count
        self._source, self._window = source, window

    def reading(self, clock: QueryClock, /) -> AbstractContextManager[Iterator[Values]]:
        return self._counted(clock) if self._window.needs_count else self._streamed(clock)

    @contextmanager
    def _streamed(self, clock: QueryClock) -> Generator[Iterator[Values]]:
        with self._source.reading(clock) as rows:
            yield islice(rows, self._window.start, self._window.stop)

    @contextmanager
    def _counted(self, clock: QueryClock) -> Generator[Iterator[Values]]:
        with ScratchTable(len(self.columns), clock) as table:
            with self._source.reading(clock) as rows:
                table.add(map(pack_row, rows))
            yield table.rows((), *self._window.bounds(table.count))


def _at(place: int) -> Callable[[Values], Any]:
    return lambda row: row[place]
