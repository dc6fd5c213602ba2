"""Reading the interviews of a view, page by page. Covers: filters, order and windows, in flat memory.

Every page is a short read of its own, so it shows the file as it is then; an order is kept in a temporary table on
disk. Does not cover: what a page's rows become (results.results), or the SQL (store.run_file.reader).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from headrace.expressions import Column
from headrace.results.columns import Catalog, ResultColumn
from headrace.results.conditions import SORTS_IN_SQL, Conditions, Predicate, sql_column
from headrace.results.records import Getter, Record, getter, projection_of
from headrace.results.views import SortKey, View
from headrace.store.contents import decoding
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_rows import (
    EVERYTHING,
    KEY,
    ORDINAL,
    Fetched,
    KeyTable,
    Projection,
    RowSet,
    check_none_is_missing,
    choose,
    count,
    fetch,
    key_before,
    with_checks,
)
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.row_check import check_rows, decoding_row
from headrace.survey.values import SqlValue, encode_value

_BEFORE_ALL = -1


class Stage:
    """The interviews of a row set that pass a view's filters. `reader` holds the row set's table, where it has one."""

    def __init__(self, reader: Reader, row_set: RowSet, view: View, catalog: Catalog, header: RunHeader) -> None:
        self.reader = reader
        self._row_set = row_set
        self._catalog = catalog
        self._header = header
        self._conditions = Conditions(view.filters, catalog, header)

    def pages(self, projection: Projection, start: int, stop: int | None) -> Iterator[list[Fetched]]:
        """The rows from `start` up to `stop`, in order. A page may be empty where Python filters it."""
        after, skip = self._enter(start)
        left = math.inf if stop is None else stop - start
        projection = checked(_both(projection, projection_of(self._conditions.columns)), self._header)
        predicates = self._conditions.predicates(projection)
        while after is not None and left > 0:
            with self.reader.snapshot() as connection:
                condition, rest = self._conditions.split(connection)
                limit = projection.page_rows if rest else int(min(projection.page_rows, left))
                page, is_cut = fetch(connection, self._row_set, projection, condition, after, limit)
                after = page[-1][KEY] if is_cut else None
                if after is None:
                    check_none_is_missing(connection, self._header.path)
            check_rows(page, projection, self._header)
            if rest:
                tests = [predicates[each] for each in rest]
                page = [row for row in page if self._passes(row, tests)]
            page, skip = page[skip:], max(0, skip - len(page))
            page = page if len(page) <= left else page[: int(left)]
            left -= len(page)
            yield page

    def count(self) -> int:
        with self.reader.snapshot() as connection:
            condition, rest = self._conditions.split(connection)
            if not rest:
                with decoding(self._header.path, "what it has counted"):
                    return count(connection, self._row_set, condition)
        return sum(map(len, self.pages(Projection(), 0, None)))

    def choose(self, keys: tuple[SortKey, ...], start: int, stop: int | None) -> RowSet:
        """The window of these interviews, sorted, as a row set; `reader` must be the caller's own."""
        columns = [self._catalog.find(key.name) for key in keys]
        with self.reader.snapshot() as connection:
            condition, rest = self._conditions.split(connection)
            in_sql = [_sorting_column(connection, column, self._header) for column in columns]
            exact = [column for column in in_sql if column is not None]
            if not rest and len(exact) == len(keys):
                order = [f"{c.sql}{' DESC' * key.descending}" for c, key in zip(exact, keys, strict=True)]
                check_none_is_missing(connection, self._header.path)
                return choose(connection, self._row_set, condition, order, start, stop)
        return self._choose_in_python(columns, keys, start, stop)

    def _choose_in_python(
        self, columns: list[ResultColumn], keys: tuple[SortKey, ...], start: int, stop: int | None
    ) -> RowSet:
        projection = checked(_both(projection_of(columns), projection_of(self._conditions.columns)), self._header)
        getters = [getter(column, projection, self._header) for column in columns]
        with self.reader.snapshot() as connection:
            table = KeyTable(connection, len(keys))
        for page in self.pages(projection, 0, None):
            with self.reader.snapshot() as connection:
                table.add(connection, [self._keyed(row, getters) for row in page])
        with self.reader.snapshot() as connection:
            return table.choose(connection, [key.descending for key in keys], start, stop)

    def _passes(self, row: Fetched, tests: list[Predicate]) -> bool:
        record = Record(row)
        with decoding_row(self._header, row):
            return all(test(record) for test in tests)

    def _keyed(self, row: Fetched, getters: list[Getter]) -> tuple[SqlValue, ...]:
        record = Record(row)
        with decoding_row(self._header, row):
            return row[ORDINAL], *(_sort_value(get(record)) for get in getters)

    def _enter(self, start: int) -> tuple[int | None, int]:
        """The key to read behind, and how many rows to pass over first."""
        if start == 0:
            return _BEFORE_ALL, 0
        with self.reader.snapshot() as connection:
            condition, rest = self._conditions.split(connection)
            if rest:
                return _BEFORE_ALL, start
            with decoding(self._header.path, "what it has counted"):
                return key_before(connection, self._row_set, condition, start), 0


def view_pages(
    reader: Reader, view: View, catalog: Catalog, header: RunHeader, projection: Projection
) -> Iterator[list[Fetched]]:
    """The rows of a view, in its order."""
    with _stage(reader, view, catalog, header) as (stage, start, stop):
        yield from stage.pages(projection, start, stop)


def view_values(
    reader: Reader, view: View, catalog: Catalog, header: RunHeader, columns: list[ResultColumn]
) -> Iterator[tuple[Any, ...]]:
    """These columns of each interview of a view."""
    projection = checked(projection_of([*columns, *Conditions(view.filters, catalog, header).columns]), header)
    getters = [getter(column, projection, header) for column in columns]
    for page in view_pages(reader, view, catalog, header, projection):
        for row in page:
            record = Record(row)
            with decoding_row(header, row):
                values = tuple([get(record) for get in getters])
            yield values


def view_count(reader: Reader, view: View, catalog: Catalog, header: RunHeader) -> int:
    unordered = View(parent=view.parent, filters=view.filters)
    with _stage(reader, unordered, catalog, header) as (stage, _, _):
        found = stage.count()
    return max(0, (found if view.stop is None else min(found, view.stop)) - view.start)


def chosen(own: Reader, view: View, catalog: Catalog, header: RunHeader) -> RowSet:
    """The view as a table of ordinals on a reader of the caller's own; everything needs no table."""
    if view.is_everything:
        return EVERYTHING
    row_set = EVERYTHING if view.parent is None else chosen(own, view.parent, catalog, header)
    return Stage(own, row_set, view, catalog, header).choose(view.keys, view.start, view.stop)


@contextmanager
def _stage(reader: Reader, view: View, catalog: Catalog, header: RunHeader) -> Generator[tuple[Stage, int, int | None]]:
    """A stage to read the view from, and the window that is left to apply."""
    if view.parent is None and not view.keys:
        yield Stage(reader, EVERYTHING, view, catalog, header), view.start, view.stop
        return
    own = reader.twin()  # temporary tables go when it is closed
    try:
        if view.keys:
            yield Stage(own, chosen(own, view, catalog, header), View(), catalog, header), 0, None
        else:
            row_set = chosen(own, view.parent or View(), catalog, header)
            yield Stage(own, row_set, view, catalog, header), view.start, view.stop
    finally:
        own.close()


def checked(projection: Projection, header: RunHeader) -> Projection:
    """What is read so that each row can be checked, where the file has checksums."""
    return with_checks(projection, len(header.question_names)) if header.has_checksums else projection


def _both(one: Projection, other: Projection) -> Projection:
    return Projection(
        answers=tuple(sorted({*one.answers, *other.answers})),
        agent=one.agent or other.agent,
        scenario=one.scenario or other.scenario,
        more=one.more or other.more,
        with_checksums=one.with_checksums or other.with_checksums,
        is_whole=one.is_whole or other.is_whole,
    )


def _sorting_column(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> Column | None:
    found = sql_column(connection, column, header)
    return found if found is not None and found.kinds <= SORTS_IN_SQL else None


def _sort_value(value: Any) -> SqlValue:
    """What SQLite sorts as the value: NaN as None, a huge integer as its float, lists behind texts by their JSON."""
    match value:
        case bool() | None | str():
            return value
        case int() if not -(2**63) <= value < 2**63:
            return _nearest_float(value)
        case int():
            return value
        case float():
            return None if math.isnan(value) else value
        case _:
            return encode_value(value)


def _nearest_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
