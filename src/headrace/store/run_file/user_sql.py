"""The user's own SQL on a run file. Covers: the table called `self`.

Does not cover: errors in a query, or showing its rows (results.tables.sql_table).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import apsw

from headrace.store.contents import decoding
from headrace.store.hardening import scratch
from headrace.store.quoting import quote_name
from headrace.store.run_file.interview_queries import EVERYTHING, RowSet
from headrace.store.run_file.run_schema import view_columns


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
