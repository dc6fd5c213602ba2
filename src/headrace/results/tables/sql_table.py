"""The rows of a user's SQL query on results. Covers: running it, and errors that say what to write instead.

Does not cover: the table `self` that a query reads (store.run_file.user_sql), or views (stages).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import apsw
import msgspec

from headrace.errors import InvalidInput, nearest
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.columns.sql_names import SqlNames
from headrace.results.reading.stages import OpenView
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.contents import decoding
from headrace.store.hardening import only_allowed, query_may
from headrace.store.queries.query_clock import QueryClock
from headrace.store.queries.query_limits import MOST_QUERY_LETTERS, MOST_VALUE_BYTES, limit_user_sql
from headrace.store.queries.query_thread import UserQuery
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.run_schema import view_columns
from headrace.store.run_file.user_sql import (
    COMPUTED_SOURCE,
    QueryOutline,
    computed_columns,
    define_self,
    fill_computed,
    interview_columns,
    interviews_source,
    outline,
)
from headrace.store.scratch.scratch_table import next_rows
from headrace.survey.values import decode_value

TimedRows: TypeAlias = Callable[[list[str], QueryClock], Iterator[Values]]
_ORDINAL = ResultColumn(Group.INTERVIEW, "ordinal")
_DOTTED = re.compile(r"""(?<!["'\w.])(answer|agent|scenario|model|iteration|interview)\.(\w+)""")
_FROM_SELF = re.compile(r"\b(?:from|join)\s+[\"'`\[(]*self\b|,\s*self\b", re.IGNORECASE)
_UNKNOWN = re.compile(r'no such column: "?([^"]+?)"?(?: - should.*)?$')
_QUERY_ERRORS = (
    apsw.SQLError, apsw.AuthError, apsw.ReadOnlyError, apsw.MismatchError, apsw.BindingsError, UnicodeDecodeError,
)  # fmt: skip


class SqlSource(ABC):
    """What a query calls `self`: the views of files, with columns by name."""

    def __init__(self, opened: OpenView, catalog: Catalog) -> None:
        """`opened` is the view, or the first of several, whose time limit holds."""
        self.opened = opened
        self.catalog = catalog

    @abstractmethod
    def names(self, connection: apsw.Connection) -> SqlNames: ...

    @abstractmethod
    def columns(self, connection: apsw.Connection, names: SqlNames) -> list[str]:
        """The columns of `self`, by the names they go by."""

    @abstractmethod
    def fill(
        self, own: Reader, names: SqlNames, used: list[str], clock: QueryClock
    ) -> Callable[[apsw.Connection], None]:
        """Compute what has to be computed of the columns that are used; the function then defines `self`."""


class OneFile(SqlSource):
    """The view of one file: SQLite reads it, and Python computes the columns that SQL cannot, where they are named."""

    def names(self, connection: apsw.Connection) -> SqlNames:
        with decoding(self.opened.reader.path, "the columns of its results"):
            return SqlNames(self.catalog, [name for name, _ in view_columns(connection)])

    def columns(self, connection: apsw.Connection, names: SqlNames) -> list[str]:
        return [name for name, _ in self._columns(connection, names, [])]

    def fill(
        self, own: Reader, names: SqlNames, used: list[str], clock: QueryClock
    ) -> Callable[[apsw.Connection], None]:
        row_set = self.opened.as_row_set(own)
        if used:
            columns = [_ORDINAL, *(names.computed[name] for name in used)]
            fill_computed(own, len(used), self.opened.values(columns, clock))
        source = interviews_source(row_set, with_computed=bool(used))
        return lambda connection: define_self(connection, self._columns(connection, names, used), source)

    def _columns(self, connection: apsw.Connection, names: SqlNames, used: list[str]) -> list[tuple[str, str]]:
        viewed = interview_columns(connection, self.opened.reader.path, names.names, len(names.computed))
        return viewed + computed_columns(names.computed, used)


class SeveralFiles(SqlSource):
    """Views of several files as one: the columns that the query names are read into a temporary table."""

    def __init__(self, opened: OpenView, catalog: Catalog, rows: TimedRows) -> None:
        super().__init__(opened, catalog)
        self._rows = rows

    def names(self, connection: apsw.Connection) -> SqlNames:
        return SqlNames(self.catalog, ())

    def columns(self, connection: apsw.Connection, names: SqlNames) -> list[str]:
        return list(names.computed)

    def fill(
        self, own: Reader, names: SqlNames, used: list[str], clock: QueryClock
    ) -> Callable[[apsw.Connection], None]:
        read = used or list(names.computed)[:1]  # to count the rows
        rows = self._rows([names.computed[name].full_name for name in read], clock)
        fill_computed(own, len(read), ((place, *row) for place, row in enumerate(rows)))
        return lambda connection: define_self(connection, computed_columns(names.computed, read), COMPUTED_SOURCE)


class SqlRows(TableRows):
    """The rows of an SQL query, held to the view's time limit. It is checked at once; it runs when rows are needed."""

    holds_read = True

    def __init__(self, source: SqlSource, query: str) -> None:
        if len(query) > MOST_QUERY_LETTERS:
            raise InvalidInput(f"The query has {len(query):,} letters.", fix=f"Write at most {MOST_QUERY_LETTERS:,}.")
        self._source = source
        self._query = query
        prepared = _Prepared(source, query)
        self._sql_names, self._used = prepared.names, prepared.used
        super().__init__(source.opened.reader.path, prepared.columns)

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        source = self._source
        own = source.opened.reader.twin(clock)
        try:
            define = source.fill(own, self._sql_names, self._used, clock)
            with own.snapshot() as connection, _explained(self._query, source.catalog):
                define(connection)
                limit_user_sql(connection)
                with only_allowed(connection, query_may):
                    yield _rows(UserQuery(connection, clock), connection, self._query)
        finally:
            own.close()


def _rows(query: UserQuery, connection: apsw.Connection, sql: str) -> Iterator[Values]:
    cursor = connection.cursor()
    try:
        query.run(partial(cursor.execute, sql))
        while page := query.run(partial(next_rows, cursor)):
            yield from map(_decoded, page)
    finally:
        cursor.close()  # an interrupt would also end the statements that come while this one is open


class _Prepared:
    """A query's columns, the names that the columns of `self` go by in it, and those that Python has to compute for it;
    InvalidInput where it is wrong.

    Nothing runs. A column goes by the name that the query uses, so that `select *` has each column once.
    """

    def __init__(self, source: SqlSource, query: str) -> None:
        clock = source.opened.clock()
        with source.opened.reader.snapshot(clock) as connection, _explained(query, source.catalog):
            self.names = source.names(connection)
            while (found := self._outline(query, source.columns(connection, self.names), clock)) is None:
                continue
        if len(found.statements) != 1:
            raise InvalidInput(
                f"One query that gives rows is needed, not {len(found.statements)}.",
                fix='Write it like "select mood from self".',
            )
        (self.columns,) = found.statements
        self.used = [name for name in self.names.computed if name in found.used]

    def _outline(self, query: str, columns: list[str], clock: QueryClock) -> QueryOutline | None:
        """None where SQLite did not know a name, which it knows the next time."""
        try:
            return outline(query, columns, clock)
        except apsw.SQLError as error:
            unknown = _UNKNOWN.search(str(error))
            if unknown is None or not self.names.use(unknown[1]):
                raise
        return None


@contextmanager
def _explained(query: str, catalog: Catalog) -> Generator[None]:
    """Turn SQLite's errors about a query into InvalidInput, with what to write instead where that is known."""
    try:
        yield
    except apsw.AuthError:
        fix = "A query may only read, and the table self alone: select ... from self."
        raise InvalidInput("This SQL would change something, or look outside the results.", fix=fix) from None
    except apsw.TooBigError as error:
        most = f"A value in SQL has at most {MOST_VALUE_BYTES // 1_000_000} MB, a LIKE pattern 250 bytes."
        raise InvalidInput(f"SQLite says: {error}.", fix=most) from None
    except _QUERY_ERRORS as error:
        raise InvalidInput(f"SQLite says: {error}.", fix=_hint(str(error), query, catalog)) from None


def _hint(words: str, query: str, catalog: Catalog) -> str:
    if "no such table" in words or "prohibited" in words or not _FROM_SELF.search(query):
        return "The interviews are called self: select ... from self."
    dotted = _DOTTED.search(query)
    if dotted is not None and "no such column" in words:
        group, name = dotted.groups()
        if group == "answer":
            return f"Answers are under their question's name alone: write {name}."
        return f'Write it in double quotes: "{group}.{name}".'
    unknown = _UNKNOWN.search(words)
    if unknown is not None:
        known = nearest(unknown[1], [name.removeprefix("answer.") for name in catalog.names])
        return f"If it is a text, put it in single quotes: '{unknown[1]}'. {known}"
    return ""


def _decoded(row: tuple[Any, ...]) -> Values:
    return tuple([_value(value) for value in row]) if bytes in map(type, row) else row


def _value(value: Any) -> Any:
    """Decode an answer that SQLite has no type for, stored as a BLOB of JSON; any other BLOB stays as it is."""
    if not isinstance(value, bytes):
        return value
    try:
        return decode_value(value)
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError):
        return value
