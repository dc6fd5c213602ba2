"""The rows of a user's SQL query on results. Covers: running it, and errors that say what to write instead.

Does not cover: the table `self` that a query reads (store.run_file.user_sql), or views (stages).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import msgspec

from headrace.errors import InvalidInput, nearest
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.sql_names import SqlNames
from headrace.results.reading.stages import OpenView
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.contents import decoding
from headrace.store.hardening import only_reading, scratch
from headrace.store.queries.query_clock import QueryClock
from headrace.store.queries.query_limits import MOST_QUERY_LETTERS, MOST_VALUE_BYTES, limit_user_sql
from headrace.store.queries.query_thread import UserQuery
from headrace.store.run_file.run_schema import view_columns
from headrace.store.run_file.user_sql import define_self, statement_columns
from headrace.store.scratch.scratch_table import next_rows
from headrace.survey.values import decode_value

_DOTTED = re.compile(r"""(?<!["'\w.])(answer|agent|scenario|model|iteration|interview)\.(\w+)""")
_FROM_SELF = re.compile(r"\b(?:from|join)\s+[\"'`\[(]*self\b|,\s*self\b", re.IGNORECASE)
_UNKNOWN = re.compile(r'no such column: "?([^"]+?)"?(?: - should.*)?$')
_QUERY_ERRORS = (
    apsw.SQLError, apsw.AuthError, apsw.ReadOnlyError, apsw.MismatchError, apsw.BindingsError, UnicodeDecodeError,
)  # fmt: skip


class SqlRows(TableRows):
    """The rows of an SQL query. The query is checked at once; it runs when its rows are needed."""

    holds_read = True

    def __init__(self, opened: OpenView, catalog: Catalog, query: str) -> None:
        """It is held to the view's time limit, each time that it runs."""
        if len(query) > MOST_QUERY_LETTERS:
            raise InvalidInput(f"The query has {len(query):,} letters.", fix=f"Write at most {MOST_QUERY_LETTERS:,}.")
        self._opened = opened
        self._catalog = catalog
        self._query = query
        names, self._sql_names = _column_names(opened, catalog, query)
        super().__init__(opened.reader.path, names)

    @contextmanager
    def reading(self) -> Generator[Iterator[Values]]:
        opened, clock = self._opened, self._opened.clock()
        own = opened.reader.twin(clock)
        try:
            row_set = opened.as_row_set(own)
            with own.snapshot() as connection, _explained(self._query, self._catalog):
                define_self(connection, self.path, self._sql_names, row_set)
                limit_user_sql(connection)
                with only_reading(connection):
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


def _column_names(opened: OpenView, catalog: Catalog, query: str) -> tuple[list[str], dict[str, list[str]]]:
    """The query's columns, and the names that the columns of `self` go by in it; InvalidInput where it is wrong.

    Nothing runs. A column goes by the name that the query uses, so that `select *` has each column once.
    """
    clock = opened.clock()
    own = opened.reader.twin(clock)
    try:
        with own.snapshot() as connection, _explained(query, catalog):
            with decoding(own.path, "the columns of its results"):
                shown = [name for name, _ in view_columns(connection)]
            names = SqlNames(catalog, shown)
            found = _named_columns(connection, own.path, query, names, clock)
            while found is None:
                found = _named_columns(connection, own.path, query, names, clock)
    finally:
        own.close()
    if len(found) != 1:
        raise InvalidInput(
            f"One query that gives rows is needed, not {len(found)}.", fix='Write it like "select mood from self".'
        )
    return found[0], names.names


def _named_columns(
    connection: apsw.Connection, path: Path, query: str, names: SqlNames, clock: QueryClock
) -> list[list[str]] | None:
    """The columns of each statement; None where SQLite did not know a name, which it knows the next time."""
    define_self(connection, path, names.names)
    limit_user_sql(connection)
    try:
        with only_reading(connection):
            return UserQuery(connection, clock).run(partial(statement_columns, connection, query))
    except apsw.SQLError as error:
        unknown = _UNKNOWN.search(str(error))
        if unknown is None or not names.use(unknown[1]):
            raise
    with scratch(connection):
        connection.execute("DROP VIEW temp.self")
    return None


@contextmanager
def _explained(query: str, catalog: Catalog) -> Generator[None]:
    """Turn SQLite's errors about a query into InvalidInput, with what to write instead where that is known."""
    try:
        yield
    except apsw.AuthError:
        fix = "A query may only read: select ... from self."
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
