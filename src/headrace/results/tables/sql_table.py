"""The rows of a user's SQL query on results. Covers: running it, and errors that say what to write instead.

Does not cover: the table `self` that a query reads (store.run_file.user_sql), or views (stages).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import apsw
import msgspec

from headrace.errors import InvalidInput
from headrace.expressions import ColumnKind
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn, column_kinds
from headrace.results.columns.sql_names import SqlNames, mentioned_names
from headrace.results.reading.stages import OpenView
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.contents import decoding
from headrace.store.hardening import only_allowed, query_may
from headrace.store.queries.query_clock import QueryClock
from headrace.store.queries.query_limits import MOST_QUERY_LETTERS, MOST_VALUE_BYTES, limit_user_sql
from headrace.store.queries.query_thread import UserQuery
from headrace.store.run_file.interview_queries import check_none_is_missing
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.run_schema import view_columns
from headrace.store.run_file.user_sql import (
    COMPUTED_SOURCE,
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
    def names(self, connection: apsw.Connection, mentioned: list[str]) -> SqlNames:
        """What its columns are called in a query that mentions these names."""

    @abstractmethod
    def columns(self, connection: apsw.Connection, names: SqlNames) -> list[str]:
        """The columns of `self`, by the names they go by."""

    @abstractmethod
    def fill(self, own: Reader, names: SqlNames, used: list[str], clock: QueryClock) -> FilledSelf:
        """Compute what has to be computed of the columns that are used."""


class FilledSelf(msgspec.Struct, frozen=True):
    """The table `self` before a query: `define` makes it; `has_texts` says whether texts are among a column's values,
    True where that is not known.
    """

    define: Callable[[apsw.Connection], None]
    has_texts: Callable[[apsw.Connection, str], bool]


class OneFile(SqlSource):
    """The view of one file: SQLite reads it, and Python computes the columns that SQL cannot, where they are named."""

    def names(self, connection: apsw.Connection, mentioned: list[str]) -> SqlNames:
        with decoding(self.opened.reader.path, "the columns of its results"):
            viewed = [name for name, _ in view_columns(connection)]
        return SqlNames(self.catalog, viewed, mentioned)

    def columns(self, connection: apsw.Connection, names: SqlNames) -> list[str]:
        return [name for name, _ in self._columns(connection, names, [])]

    def fill(self, own: Reader, names: SqlNames, used: list[str], clock: QueryClock) -> FilledSelf:
        row_set = self.opened.as_row_set(own)
        with_texts: set[str] = set()
        if used:
            columns = [_ORDINAL, *(names.computed[name] for name in used)]
            with_texts = _fill(own, used, self.opened.values(columns, clock))
        source = interviews_source(row_set, with_computed=bool(used))

        def has_texts(connection: apsw.Connection, name: str) -> bool:
            if name in names.computed:
                return name in with_texts
            kinds = column_kinds(connection, names.columns[name], self.opened.header)
            return kinds is None or ColumnKind.TEXT in kinds

        def define(connection: apsw.Connection) -> None:
            check_none_is_missing(connection, self.opened.reader.path)
            define_self(connection, self._columns(connection, names, used), source)

        return FilledSelf(define, has_texts)

    def _columns(self, connection: apsw.Connection, names: SqlNames, used: list[str]) -> list[tuple[str, str]]:
        viewed = interview_columns(connection, self.opened.reader.path, names.names, len(names.computed))
        return viewed + computed_columns(names.computed, used)


class SeveralFiles(SqlSource):
    """Views of several files as one: the columns that the query names are read into a temporary table."""

    def __init__(self, opened: OpenView, catalog: Catalog, rows: TimedRows) -> None:
        super().__init__(opened, catalog)
        self._rows = rows

    def names(self, connection: apsw.Connection, mentioned: list[str]) -> SqlNames:
        return SqlNames(self.catalog, (), mentioned)

    def columns(self, connection: apsw.Connection, names: SqlNames) -> list[str]:
        return list(names.computed)

    def fill(self, own: Reader, names: SqlNames, used: list[str], clock: QueryClock) -> FilledSelf:
        read = used or list(names.computed)[:1]  # to count the rows
        columns_read = [names.computed[name].full_name for name in read]
        each_once = list(dict.fromkeys(columns_read))  # a query may call a column by two names
        places = [each_once.index(column) for column in columns_read]
        rows = enumerate(self._rows(each_once, clock))
        with_texts = _fill(own, read, ((number, *[row[place] for place in places]) for number, row in rows))
        columns = computed_columns(names.computed, read)
        return FilledSelf(
            lambda connection: define_self(connection, columns, COMPUTED_SOURCE), lambda _, name: name in with_texts
        )


def _fill(own: Reader, names: list[str], rows: Iterator[Values]) -> set[str]:
    """Write the values of these columns for `self`; returns the names of those that have texts."""
    return {names[place] for place in fill_computed(own, len(names), rows)}


class SqlRows(TableRows):
    """The rows of an SQL query, held to the view's time limit. It is checked at once; it runs when rows are needed."""

    holds_read = True

    def __init__(self, source: SqlSource, query: str) -> None:
        if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"An SQL query is a text, not {type(query).__name__}.", fix='Write sql("select mood from self").'
            )
        if len(query) > MOST_QUERY_LETTERS:
            raise InvalidInput(f"The query has {len(query):,} letters.", fix=f"Write at most {MOST_QUERY_LETTERS:,}.")
        self._source = source
        self._query = query
        prepared = _Prepared(source, query)
        self._sql_names, self._used, self._origins = prepared.names, prepared.used, prepared.origins
        super().__init__(source.opened.reader.path, prepared.columns)

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        source = self._source
        own = source.opened.reader.twin(clock)
        try:
            filled = source.fill(own, self._sql_names, self._used, clock)
            with own.snapshot() as connection, _explained(self._query, self._sql_names):
                filled.define(connection)
                encoded = [
                    place
                    for place, origin in enumerate(self._origins)
                    if origin is not None and not filled.has_texts(connection, origin)
                ]
                limit_user_sql(connection)
                with only_allowed(connection, query_may):
                    yield _rows(UserQuery(connection, clock), connection, self._query, encoded)
        finally:
            own.close()


def _rows(query: UserQuery, connection: apsw.Connection, sql: str, encoded: list[int]) -> Iterator[Values]:
    """The query's rows; the texts in the columns at these places are JSON."""
    cursor = connection.cursor()
    try:
        query.run(partial(cursor.execute, sql))
        while page := query.run(partial(next_rows, cursor)):
            yield from (_decoded(row, encoded) for row in page) if encoded else page
    finally:
        cursor.close()  # an interrupt would also end the statements that come while this one is open


class _Prepared:
    """A query's columns with where each comes from, the names that the columns of `self` go by in it, and those that
    Python has to compute for it; InvalidInput where it is wrong. Nothing runs.
    """

    def __init__(self, source: SqlSource, query: str) -> None:
        clock, mentioned = source.opened.clock(), mentioned_names(query)
        with source.opened.reader.snapshot(clock) as connection:
            self.names = source.names(connection, mentioned)
            with _explained(query, self.names):
                found = outline(query, source.columns(connection, self.names), clock)
        if len(found.statements) != 1:
            raise InvalidInput(
                f"One query that gives rows is needed, not {len(found.statements)}.",
                fix='Write it like "select mood from self".',
            )
        (columns,) = found.statements
        self.columns = _told_apart([column.name for column in columns])
        # Of a union SQLite tells only where the values of its first part come from.
        is_union = any(name.lower() == "union" for name in mentioned)
        self.origins = [None if is_union else column.origin for column in columns]
        self.used = [name for name in self.names.computed if name in found.used or self._may_join(query, name)]

    def _may_join(self, query: str, name: str) -> bool:
        """SQLite does not tell which columns it compares for USING and NATURAL: these may be any that are mentioned,
        or all.
        """
        words = query.lower()
        return "natural" in words or ("using" in words and name in self.names.mentioned)


def _told_apart(names: list[str]) -> list[str]:
    """The names of a query's columns, with a number where an earlier one is called the same."""
    told: list[str] = []
    taken = set(names)
    for name in names:
        new = name
        if name in told:
            new = next(each for number in count(2) if (each := f"{name}_{number}") not in taken)
        taken.add(new)
        told.append(new)
    return told


@contextmanager
def _explained(query: str, names: SqlNames) -> Generator[None]:
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
        raise InvalidInput(f"SQLite says: {error}.", fix=_hint(str(error), query, names)) from None


def _hint(words: str, query: str, names: SqlNames) -> str:
    if "no such table" in words or "prohibited" in words or not _FROM_SELF.search(query):
        return "The interviews are called self: select ... from self."
    dotted = _DOTTED.search(query)
    if dotted is not None and "no such column" in words:
        group, name = dotted.groups()
        if group == "answer":
            return f"Answers are under their question's name alone: write {name}."
        return f'Write it in double quotes: "{group}.{name}".'
    unknown = _UNKNOWN.search(words)
    return "" if unknown is None else _hint_for_name(unknown[1], names)


def _hint_for_name(unknown: str, names: SqlNames) -> str:
    if several := names.several(unknown) or names.several(unknown.rpartition(".")[2]):  # `s.age` of `self as s`
        listed = " or ".join(f'"{column.full_name}"' for column in several)
        return f"It could be several columns. Write {listed}, in double quotes."
    return f"If it is a text, put it in single quotes: '{unknown}'. {names.nearest(unknown)}"


def _decoded(row: Values, encoded: list[int]) -> Values:
    values = list(row)
    for place in encoded:
        if isinstance(values[place], str):
            values[place] = _value(values[place])
    return tuple(values)


def _value(text: str) -> Any:
    try:
        return decode_value(text)
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError):
        return text
