"""The user's own SQL on a run file. Covers: the table called `self`, and keeping a query's rows.

Does not cover: errors in a query, or showing its rows (results.tables.sql_table).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from headrace.store.contents import decoding
from headrace.store.hardening import scratch
from headrace.store.quoting import quote_name
from headrace.store.run_file.interview_queries import EVERYTHING, RowSet
from headrace.store.run_file.run_schema import view_columns

QueryRow: TypeAlias = tuple[Any, ...]

_PAGE = 1_000


def define_self(
    connection: apsw.Connection, path: Path, names: Mapping[str, Iterable[str]], row_set: RowSet = EVERYTHING
) -> None:
    """Make `self` the name of these interviews, in their order, with the columns of the view `results`; those that
    `names` has go by other names.
    """
    with decoding(path, "its questions and fields"):
        shown = [(each, sql) for name, sql in view_columns(connection) for each in names.get(name, (name,))]
        columns = ", ".join(f"{sql} AS {quote_name(name)}" for name, sql in shown)
    with scratch(connection):
        connection.execute(
            f"CREATE TEMP VIEW self AS SELECT {columns} FROM {row_set.tables}"
            " LEFT JOIN main.agents a ON a.position = i.agent LEFT JOIN main.scenarios s ON s.position = i.scenario"
            f" LEFT JOIN main.models m ON m.position = i.model ORDER BY {row_set.key}"
        )


def statement_columns(connection: apsw.Connection, query: str) -> list[list[str]]:
    """The column names of each statement of a query that gives rows. Nothing runs."""
    found: list[list[str]] = []
    rest = query
    while rest.strip():
        text, names = _first_statement(connection, rest)
        if names:
            found.append(names)
        rest = rest[len(text) :] if text else ""
    return found


def _first_statement(connection: apsw.Connection, query: str) -> tuple[str, list[str]]:
    seen: list[tuple[str, list[str]]] = []

    def note(cursor: apsw.Cursor, text: str, _bindings: object) -> bool:
        seen.append((text, [name for name, _ in cursor.get_description()]))
        return False  # stops before anything runs

    cursor = connection.cursor()
    cursor.exec_trace = note
    with suppress(apsw.ExecTraceAbort):
        cursor.execute(query)
    return seen[0] if seen else ("", [])


class RowSpool:
    """A query's rows in a temporary file, so that reading them again holds no read open in the run file."""

    def __init__(self, columns: int, rows: Iterable[QueryRow]) -> None:
        self._connection = apsw.Connection("")
        self._connection.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-2000").fetchall()
        names = ", ".join(f"c{number}" for number in range(columns))
        self._connection.execute(f"CREATE TABLE rows(position INTEGER PRIMARY KEY, {names})")
        self._names = names
        self._fill(columns, rows)

    def __iter__(self) -> Iterator[QueryRow]:
        after = 0
        while page := self._page(after):
            yield from page
            after += len(page)

    def close(self) -> None:
        self._connection.close()

    def _page(self, after: int) -> list[QueryRow]:
        return self._connection.execute(
            f"SELECT {self._names} FROM rows WHERE position > ? ORDER BY position LIMIT {_PAGE}", (after,)
        ).fetchall()

    def _fill(self, columns: int, rows: Iterable[QueryRow]) -> None:
        insert = f"INSERT INTO rows({self._names}) VALUES({', '.join('?' * columns)})"
        left = iter(rows)
        while batch := list(islice(left, _PAGE)):
            with self._connection:
                self._connection.executemany(insert, batch)
