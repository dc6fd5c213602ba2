"""Reading the interviews of a view, page by page, in flat memory. Covers: filters, order and windows.

Every page is a short read of its own, so it shows the file as it is at that moment. An order is kept in a temporary
table on disk:

    all interviews ──► stage: filters ──► sorted ordinals in a temporary table (a RowSet) ──► stage: pages of rows

Does not cover: what a page's rows become (results), or the SQL (store.run_file.interview_queries).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import apsw
import msgspec
from msgspec.structs import replace

from headrace.expressions import Sql, SqlTerm, parse
from headrace.results.columns.page_values import PageValues
from headrace.results.columns.records import Getter, Record, getter, projection_of
from headrace.results.columns.result_column import ORDINAL as NUMBER
from headrace.results.columns.result_column import Bound, ResultColumn
from headrace.results.columns.value_keys import sort_keys
from headrace.results.reading.bulk_reading import BulkReading, ReadPages, Taken, bulk_reading
from headrace.results.reading.conditions import SORTS_IN_SQL, Conditions, Predicate, sql_term
from headrace.results.reading.scopes import row_in, rows_in
from headrace.results.reading.views import SortKey, View
from headrace.results.tabular import Columns
from headrace.store.contents import decoding
from headrace.store.queries.query_clock import TIMEOUT_S, QueryClock
from headrace.store.run_file.bulk.column_pages import ColumnPage
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import (
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
    everything_of,
    fetch,
    key_before,
    rows_between,
    rows_where,
    with_checks,
)
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.row_check import check_rows, decoding_row
from headrace.survey.values import SqlValue

Page = TypeVar("Page", bound=Sized)

_BEFORE_ALL = -1
_BATCH_ROWS, _WHOLE_ROWS = 8_192, 1_024


class OpenView(msgspec.Struct, frozen=True):
    """A view of a run file with what is needed to read it: the file and its header."""

    reader: Reader
    header: RunHeader
    view: View
    timeout_s: float = TIMEOUT_S

    def clock(self) -> QueryClock:
        """The time limit of one read of the view; it begins now."""
        return QueryClock(self.timeout_s)

    def pages(self, projection: Projection, clock: QueryClock | None = None) -> Iterator[list[Fetched]]:
        """The rows of the view, in its order. A clock that is given is that of a larger read, which restarts it."""
        own = self.clock() if clock is None else clock
        with self._stage(own) as (stage, start, stop):
            pages = stage.pages(projection, start, stop)
            yield from _handed_over(pages, own) if clock is None else filter(None, pages)

    def values(self, columns: list[ResultColumn], clock: QueryClock | None = None) -> Iterator[tuple[Any, ...]]:
        """These columns of each interview of the view; the clock as for `pages`."""
        conditions = Conditions(self.view.filters, self.header)
        projection = _checked(projection_of([*columns, *conditions.columns]), self.header)
        getters = [getter(column, projection, self.header) for column in columns]
        for page in self.pages(projection, clock):
            for row in page:
                record = Record(row)
                with decoding_row(self.header, row):
                    values = tuple([get(record) for get in getters])
                yield values

    def batches(self, columns: list[ResultColumn]) -> Iterator[Columns]:
        """These columns of the view's interviews, some thousand rows at a time."""
        if not columns:
            return
        clock = self.clock()
        with self._stage(clock) as (stage, start, stop):
            yield from _handed_over(stage.batches(columns, start, stop), clock)

    def at_each(
        self, ordinals: Sequence[int], columns: list[ResultColumn], clock: QueryClock
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """These columns of the file's interviews with these ordinals, by ordinal; the caller bounds their number."""
        if not ordinals:
            return
        condition = f"ordinal IN ({', '.join(map(str, map(int, ordinals)))})"
        rows = rows_where(condition, max(ordinals) + 1, len(ordinals), is_drawn=True)
        stage = ViewStage(self.of(View()), self.reader, rows, clock, counts_file=False)
        projection = _checked(projection_of(columns), self.header)
        getters = [getter(column, projection, self.header) for column in columns]
        for page in stage.pages(projection, 0, len(ordinals)):
            for row in page:
                record = Record(row)
                with decoding_row(self.header, row):
                    values = tuple([get(record) for get in getters])
                yield row[ORDINAL], values

    def batches_between(self, columns: list[ResultColumn], first: int, stop: int) -> Iterator[Columns]:
        """The same of the file's interviews with ordinals from `first` up to `stop`."""
        yield from ViewStage(self.of(View()), self.reader, rows_between(first, stop)).batches(columns, 0, None)

    def filtered_between(self, columns: list[ResultColumn], first: int, stop: int) -> Iterator[Columns]:
        """The same of those that pass the view's filters, within its time limit."""
        row_set = rows_between(first, stop)
        yield from ViewStage(self, self.reader, row_set, self.clock()).batches(columns, 0, None)

    def whole(self) -> Iterator[ColumnPage | list[Fetched]]:
        """The view's interviews with all but their details, some hundred at a time."""
        clock = self.clock()
        with self._stage(clock) as (stage, start, stop):
            yield from _handed_over(stage.whole(start, stop), clock)

    def at(self, ordinal: int, projection: Projection) -> Fetched | None:
        """One interview of the view by its number in the plan; None where the view has none."""
        view = self.view
        if view.parent is None and not view.has_window:
            stage = ViewStage(self, self.reader, row_in(view.scope, self.reader, ordinal), self.clock())
            return next(chain.from_iterable(stage.pages(projection, 0, 1)), None)
        # Whether it is in a window is known when the window has been read.
        numbered = Bound(parse(f"{NUMBER.full_name} == {ordinal}"), (NUMBER,))
        return next(chain.from_iterable(self.of(view.filtered(numbered)).pages(projection)), None)

    def count(self) -> int:
        """How many interviews the view has."""
        with self.of(self.view.unsorted)._stage(self.clock()) as (stage, _, _):
            found = stage.count()
        return max(0, (found if self.view.stop is None else min(found, self.view.stop)) - self.view.start)

    def is_counted_in_sql(self) -> bool:
        """Whether SQLite alone can count the view; otherwise Python would have to read all its interviews."""
        filters = [condition for view in self.view.lineage() for condition in view.filters]
        with self.reader.snapshot() as connection:
            return not Conditions(tuple(filters), self.header).split(connection)[1]

    def as_row_set(self, own: Reader) -> RowSet:
        """The view as a temporary table of ordinals, on a reader of the caller's own. All interviews, and the first
        ones of them, need no table.
        """
        view = self.view
        row_set = self._rows_before(own)
        if view.is_whole and (view.scope is None or not view.scope.is_drawn):
            return row_set
        return ViewStage(self, own, row_set).choose(view.keys, view.start, view.stop)

    def _rows_before(self, own: Reader) -> RowSet:
        """What the view's filters choose from: its parent's interviews, or those of the file."""
        parent = self.view.parent
        return rows_in(self.view.scope, own) if parent is None else self.of(parent).as_row_set(own)

    @contextmanager
    def _stage(self, clock: QueryClock) -> Generator[tuple[ViewStage, int, int | None]]:
        """A stage to read the view from, and the window that is still to be applied to it."""
        view = self.view
        if view.parent is None and not view.keys:
            yield ViewStage(self, self.reader, rows_in(view.scope, self.reader), clock), view.start, view.stop
            return
        own = self.reader.twin(clock)  # temporary tables go when it is closed
        try:
            if view.keys:
                yield ViewStage(self.of(View()), own, self.as_row_set(own)), 0, None
            else:
                yield ViewStage(self, own, self._rows_before(own)), view.start, view.stop
        finally:
            own.close()

    def of(self, view: View) -> OpenView:
        """Another view of the same file."""
        return replace(self, view=view)


def _handed_over(pages: Iterator[Page], clock: QueryClock) -> Iterator[Page]:
    """The pages that have rows; the time in which the caller uses one does not count."""
    for page in pages:
        if page:
            yield page
            clock.restart()


class ViewStage:
    """One level of a view: the interviews of a row set that pass its filters. `reader` holds the row set's table."""

    def __init__(
        self,
        opened: OpenView,
        reader: Reader,
        row_set: RowSet,
        clock: QueryClock | None = None,
        *,
        counts_file: bool = True,
    ) -> None:
        """A reader of the stage's own has its clock; one that others use too is given it with each read. With
        `counts_file`, whoever comes to its end learns whether rows of the file are missing.
        """
        self._counts_file = counts_file
        self._reader = reader
        self._clock = clock
        self._row_set = row_set
        self._header = opened.header
        self._conditions = Conditions(opened.view.filters, opened.header)

    def pages(self, projection: Projection, start: int, stop: int | None) -> Iterator[list[Fetched]]:
        """The rows from `start` up to `stop`, in order. A page may be empty where Python filters it."""
        place = self._enter(start, stop)
        projection = self._with_conditions(projection)
        predicates = self._conditions.predicates(projection)
        while place.has_more:
            yield self._next_page(place, projection, predicates)

    def batches(self, columns: list[ResultColumn], start: int, stop: int | None) -> Iterator[Columns]:
        """Columns of the rows from `start` up to `stop`, in order, some thousand rows at a time."""
        projection = self._with_conditions(projection_of(columns))
        getters = [getter(column, projection, self._header) for column in columns]
        values = PageValues(columns, projection.answers, self._header) if PageValues.can_take(columns) else None
        take = None if values is None else values.take
        for part in self._parts(projection, bulk_reading(projection, self._header, take, _BATCH_ROWS), start, stop):
            if isinstance(part, ReadPages):
                batch = [tuple(chain.from_iterable(pieces)) for pieces in zip(*part.taken, strict=True)]
            else:
                batch = list(zip(*[self._taken(row, getters) for row in part], strict=True))
            if batch:
                yield batch

    def whole(self, start: int, stop: int | None) -> Iterator[ColumnPage | list[Fetched]]:
        """The rows from `start` up to `stop`, in order, with all but their details; a page may be in either form."""
        projection = self._with_conditions(everything_of(len(self._header.question_names)))
        bulk = bulk_reading(projection, self._header, _as_it_is, _WHOLE_ROWS)
        for part in self._parts(projection, bulk, start, stop):
            if isinstance(part, ReadPages):
                yield from part.taken
            else:
                yield part

    def _parts(
        self, projection: Projection, bulk: BulkReading[Taken] | None, start: int, stop: int | None
    ) -> Iterator[ReadPages[Taken] | list[Fetched]]:
        place = self._enter(start, stop)
        predicates = self._conditions.predicates(projection)
        while place.has_more:
            pages = None if bulk is None or not bulk.is_due() else self._next_pages(place, bulk)
            yield self._next_page(place, projection, predicates) if pages is None else pages

    def _next_pages(self, place: _ReadPosition, bulk: BulkReading[Taken]) -> ReadPages[Taken] | None:
        """The next rows, read in pages; None where they are to be read row by row."""
        assert place.after is not None
        with self._reader.snapshot(self._clock) as connection:
            condition, rest = self._conditions.split(connection)
            if rest or place.skip:
                bulk.put_off()
                return None
            pages = bulk.read(connection, self._row_set, condition, place.after, place.left)
            if pages is None:
                return None
            place.after = pages.last_key if pages.is_cut else None
            if place.after is None and self._counts_file:
                check_none_is_missing(connection, self._header.path)
        place.left -= pages.rows
        return pages

    def _next_page(
        self, place: _ReadPosition, projection: Projection, predicates: dict[Bound, Predicate]
    ) -> list[Fetched]:
        assert place.after is not None
        with self._reader.snapshot(self._clock) as connection:
            condition, rest = self._conditions.split(connection)
            limit = projection.page_rows if rest else int(min(projection.page_rows, place.left))
            page, is_cut = fetch(connection, self._row_set, projection, condition, place.after, limit)
            place.after = page[-1][KEY] if is_cut else None
            if place.after is None and self._counts_file:
                check_none_is_missing(connection, self._header.path)
        check_rows(page, projection, self._header)
        if rest:
            tests = [predicates[each] for each in rest]
            page = [row for row in page if self._passes(row, tests)]
        page, place.skip = page[place.skip :], max(0, place.skip - len(page))
        page = page if len(page) <= place.left else page[: int(place.left)]
        place.left -= len(page)
        return page

    def count(self) -> int:
        with self._reader.snapshot(self._clock) as connection:
            condition, rest = self._conditions.split(connection)
            if not rest:
                with decoding(self._header.path, "what it has counted"):
                    return count(connection, self._row_set, condition, self._reader.blocks)
        return sum(map(len, self.pages(Projection(), 0, None)))

    def choose(self, keys: tuple[SortKey, ...], start: int, stop: int | None) -> RowSet:
        """A row set of these interviews, sorted, from `start` up to `stop`. It lives as long as the stage's reader."""
        columns = [key.column for key in keys]
        with self._reader.snapshot(self._clock) as connection:
            condition, rest = self._conditions.split(connection)
            in_sql = [sorting_term(connection, column, self._header) for column in columns]
            exact = [term for term in in_sql if term is not None]
            if not rest and len(exact) == len(keys):
                order = [_order(term, key) for term, key in zip(exact, keys, strict=True)]
                if stop is None or columns[:1] not in ([], [NUMBER]):  # the first and last few are found at once
                    check_none_is_missing(connection, self._header.path)
                return choose(connection, self._row_set, condition, order, start, stop)
        return self._choose_in_python(columns, keys, start, stop)

    def _choose_in_python(
        self, columns: list[ResultColumn], keys: tuple[SortKey, ...], start: int, stop: int | None
    ) -> RowSet:
        with self._reader.snapshot(self._clock) as connection:
            table = KeyTable(connection, 2 * len(keys))  # sort_keys gives two for each
        for page in self.keyed(columns):
            with self._reader.snapshot(self._clock) as connection:
                table.add(connection, page)
        with self._reader.snapshot(self._clock) as connection:
            return table.choose(connection, [key.descending for key in keys for _ in range(2)], start, stop)

    def keyed(self, columns: list[ResultColumn]) -> Iterator[list[tuple[Any, ...]]]:
        """The interviews' ordinals, each with what it is sorted by: two SQL values for each of these columns."""
        projection = self._with_conditions(projection_of(columns))
        getters = [getter(column, projection, self._header) for column in columns]
        for page in self.pages(projection, 0, None):
            yield [self._keyed(row, getters) for row in page]

    def _with_conditions(self, projection: Projection) -> Projection:
        return _checked(_both(projection, projection_of(self._conditions.columns)), self._header)

    def _taken(self, row: Fetched, getters: list[Getter]) -> tuple[Any, ...]:
        record = Record(row)
        with decoding_row(self._header, row):
            return tuple([get(record) for get in getters])

    def _passes(self, row: Fetched, tests: list[Predicate]) -> bool:
        record = Record(row)
        with decoding_row(self._header, row):
            return all(test(record) for test in tests)

    def _keyed(self, row: Fetched, getters: list[Getter]) -> tuple[SqlValue, ...]:
        record = Record(row)
        with decoding_row(self._header, row):
            return row[ORDINAL], *chain.from_iterable(sort_keys(get(record)) for get in getters)

    def _enter(self, start: int, stop: int | None) -> _ReadPosition:
        """Where to begin, so that the next rows are those from `start` up to `stop`."""
        left = math.inf if stop is None else stop - start
        if start == 0:
            return _ReadPosition(_BEFORE_ALL, 0, left)
        with self._reader.snapshot(self._clock) as connection:
            condition, rest = self._conditions.split(connection)
            if rest:
                return _ReadPosition(_BEFORE_ALL, start, left)
            with decoding(self._header.path, "what it has counted"):
                key = key_before(connection, self._row_set, condition, start, self._reader.blocks)
                return _ReadPosition(key, 0, left)


@dataclass(slots=True)
class _ReadPosition:
    """How far a reading is: the key behind which it goes on, None at the end; how many rows it passes over first; how
    many it still gives.
    """

    after: int | None
    skip: int
    left: float

    @property
    def has_more(self) -> bool:
        return self.after is not None and self.left > 0


def _as_it_is(page: ColumnPage) -> ColumnPage:
    return page


def _checked(projection: Projection, header: RunHeader) -> Projection:
    """The projection with what checksums cover, where the file has checksums."""
    return with_checks(projection, len(header.question_names)) if header.has_checksums else projection


def _both(one: Projection, other: Projection) -> Projection:
    return Projection(
        answers=tuple(sorted({*one.answers, *other.answers})),
        agent=one.agent or other.agent,
        scenario=one.scenario or other.scenario,
        more=one.more or other.more,
        detail=one.detail or other.detail,
        with_checksums=one.with_checksums or other.with_checksums,
        is_whole=one.is_whole or other.is_whole,
    )


def _order(term: SqlTerm, key: SortKey) -> Sql:
    # By the table's own key, SQLite reads from the end and sorts nothing.
    text = EVERYTHING.key if key.column == NUMBER else term.text
    return Sql(f"{text}{' DESC' * key.descending}", term.parameters)


def sorting_term(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> SqlTerm | None:
    """The column in SQL; None where SQLite would sort it otherwise."""
    term = sql_term(connection, column, header)
    return term if term is not None and term.kinds <= SORTS_IN_SQL else None
