"""The user's own SQL on a run file. Covers: the table called `self`, and keeping a query from anything else.

A query is first prepared where there is nothing but an empty table `self`: one that names another table, the file's own
or SQLite's, gets no further. Does not cover: errors in a query, or showing its rows (results.tables.sql_table).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec

from headrace.expressions import ColumnKind
from headrace.store.contents import decoding, typed_rows
from headrace.store.hardening import harden, only_allowed, query_may, scratch
from headrace.store.queries.query_clock import QueryClock
from headrace.store.queries.query_limits import limit_user_sql
from headrace.store.queries.query_thread import UserQuery
from headrace.store.quoting import quote_name
from headrace.store.run_file.column_kinds import kinds_to_bits
from headrace.store.run_file.interview_queries import EVERYTHING, RowSet
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.run_schema import MOST_VIEW_COLUMNS, answer_column, view_columns
from headrace.store.scratch.scratch_table import next_rows
from headrace.survey.values import to_sql

_SELF = "self"
_COMPUTED = "headrace_computed"
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})


class QueryOutline(msgspec.Struct, frozen=True):
    """What a query is, found without running it: the columns of each statement that gives rows, and which columns of
    `self` it names.
    """

    statements: list[list[OutlineColumn]]
    used: set[str]


class OutlineColumn(msgspec.Struct, frozen=True):
    """A column of a query. `origin` is the column of `self` whose values it has as they are; None where it has none."""

    name: str
    origin: str | None


def outline(query: str, columns: Iterable[str], clock: QueryClock) -> QueryOutline:
    """Prepare a query of a table `self` with these columns, in a database that has nothing else."""
    used: set[str] = set()
    uncounted: set[str] = set()

    def may(operation: int, table: str | None, column: str | None, database: str | None, by: str | None) -> int:
        if operation == apsw.SQLITE_READ and table is not None and table not in _TABLE_FUNCTIONS:
            if table == _SELF and database != "main":
                used.add(column or "")
            elif column:
                return apsw.SQLITE_DENY
            else:
                uncounted.add(table)
        return query_may(operation, table, column, database, by)

    with closing(apsw.Connection(":memory:")) as connection:
        harden(connection)
        _define_empty(connection, columns)
        limit_user_sql(connection)
        with only_allowed(connection, may):
            statements = UserQuery(connection, clock).run(lambda: _statements(connection, query))
        # A read without a column, as for count(*), is told of the query's own `with` tables too.
        if any(_is_there(connection, table) for table in uncounted):
            raise apsw.AuthError("not authorized")
    return QueryOutline(statements, used)


def _define_empty(connection: apsw.Connection, columns: Iterable[str]) -> None:
    """Make `self` a table without a rowid: as for a view, but SQLite tells which result columns are columns of it."""
    first, *others = map(quote_name, columns)
    listed = ", ".join([f"{first} PRIMARY KEY", *others])
    connection.execute(f"CREATE TEMP TABLE {_SELF}({listed}) WITHOUT ROWID")


def _is_there(connection: apsw.Connection, table: str) -> bool:
    try:
        connection.execute(f"SELECT 1 FROM {quote_name(table)} LIMIT 0")
    except apsw.SQLError:
        return False
    return True


def define_self(connection: apsw.Connection, columns: Iterable[tuple[str, str]], source: str) -> None:
    """Make `self` these columns, name and SQL of each, of what stands behind FROM."""
    listed = ", ".join(f"{sql} AS {quote_name(name)}" for name, sql in columns)
    with scratch(connection):
        connection.execute(f"CREATE TEMP VIEW {_SELF} AS SELECT {listed} FROM {source}")


# --- what `self` is: interviews, with values that Python has computed where SQL cannot; or computed rows alone


def interviews_source(row_set: RowSet = EVERYTHING, *, with_computed: bool = False) -> str:
    """What stands behind FROM for interviews in their order, beside what `fill_computed` has written."""
    computed = f" JOIN temp.{_COMPUTED} k ON k.ordinal = i.ordinal" if with_computed else ""
    return (
        f"{row_set.tables}{computed}"
        " LEFT JOIN main.agents a ON a.position = i.agent LEFT JOIN main.scenarios s ON s.position = i.scenario"
        f" LEFT JOIN main.models m ON m.position = i.model ORDER BY {row_set.key}"
    )


COMPUTED_SOURCE = f"temp.{_COMPUTED} k ORDER BY k.ordinal"


def interview_columns(
    connection: apsw.Connection, path: Path, names: Mapping[str, Iterable[str]], others: int
) -> list[tuple[str, str]]:
    """Name and SQL of the columns of the view `results` by their names in SQL, with room for some others."""
    with decoding(path, "its questions and fields"):
        encoded = _encoded_answers(connection)
        shown = [
            (each, _plain(sql) if sql in encoded else sql)
            for name, sql in view_columns(connection)
            for each in names[name]
        ]
        for name, _ in shown:
            quote_name(name)
        return shown[: MOST_VIEW_COLUMNS - others]


def _encoded_answers(connection: apsw.Connection) -> set[str]:
    """The SQL of answers that may be stored as BLOBs of JSON."""
    sql = "SELECT position FROM questions WHERE kinds & ?"
    bits = (kinds_to_bits((ColumnKind.JSON, ColumnKind.TAGGED)),)
    return {answer_column(position) for (position,) in typed_rows(connection, tuple[int], sql, bits)}


def _plain(answer: str) -> str:
    """The SQL of an answer as a field would be: lists and dicts are JSON texts, booleans 1 and 0."""
    bools = f"WHEN x'{b'true'.hex()}' THEN 1 WHEN x'{b'false'.hex()}' THEN 0"
    decoded = f"CASE {answer} {bools} ELSE CAST({answer} AS TEXT) END"
    return f"CASE typeof({answer}) WHEN 'blob' THEN {decoded} ELSE {answer} END"


def computed_columns(names: Iterable[str], used: list[str]) -> list[tuple[str, str]]:
    """Name and SQL of columns whose values `fill_computed` has written for those that are used; others are NULL."""
    return [(name, f"k.c{used.index(name)}" if name in used else "NULL") for name in names]


def fill_computed(reader: Reader, width: int, rows: Iterable[tuple[Any, ...]]) -> set[int]:
    """Write values that Python has computed into a temporary table of the reader's: each row has an ordinal, or its own
    place, and `width` values. Returns which of the values were texts in some row.
    """
    columns = "".join(f", c{place}" for place in range(width))
    with reader.snapshot() as connection, scratch(connection):
        connection.execute(f"CREATE TEMP TABLE {_COMPUTED}(ordinal INTEGER PRIMARY KEY{columns})")
    insert = f"INSERT INTO temp.{_COMPUTED} VALUES(?{', ?' * width})"
    left = iter(rows)
    with_texts: set[int] = set()
    while page := next_rows(left):
        with reader.snapshot() as connection, scratch(connection):
            connection.executemany(insert, [tuple([_sql_value(value) for value in row]) for row in page])
        for _, *values in page:
            with_texts.update(place for place, value in enumerate(values) if isinstance(value, str))
    return with_texts


def _sql_value(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    stored = to_sql(value, as_bool=False)
    return stored.decode() if isinstance(stored, bytes) else stored


# --- statements


def _statements(connection: apsw.Connection, query: str) -> list[list[OutlineColumn]]:
    """The columns of each statement of a query that gives rows. Nothing runs."""
    found: list[list[OutlineColumn]] = []
    rest = query
    while rest.strip():
        text, columns = _first_statement(connection, rest)
        if columns:
            found.append(columns)
        rest = rest[len(text) :] if text else ""
    return found


def _first_statement(connection: apsw.Connection, query: str) -> tuple[str, list[OutlineColumn]]:
    seen: list[tuple[str, list[OutlineColumn]]] = []

    def note(cursor: apsw.Cursor, text: str, _bindings: object) -> bool:
        columns = cursor.description_full if cursor.get_description() else ()
        found = [OutlineColumn(name, origin if table == _SELF else None) for name, _, _, table, origin in columns]
        seen.append((text, found))
        return False  # stops before anything runs

    cursor = connection.cursor()
    cursor.exec_trace = note
    with suppress(apsw.ExecTraceAbort):
        cursor.execute(query)
    return seen[0] if seen else ("", [])
