"""The journal: answers and sealed interviews into the run file, a transaction a batch. Covers: writing them once.

One thread at a time. Does not cover: when a batch is written (runtime.survey_run), or reading (store.reader).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain

import apsw

from headrace.expressions import Kind
from headrace.plan.bitmap import Bitmap
from headrace.store.creation import kinds_to_bits
from headrace.store.rows import ANSWER_COLUMNS, Row
from headrace.survey.record import AnswerRecord, Usage, encode_record
from headrace.survey.values import SqlValue

_KINDS_OF_TYPE: dict[type, frozenset[Kind]] = {
    type(None): frozenset({Kind.NULL}),
    int: frozenset({Kind.INT}),
    float: frozenset({Kind.REAL}),
    str: frozenset({Kind.TEXT}),
    bytes: frozenset({Kind.JSON, Kind.TAGGED}),
}


_MOST_ROWS_AT_ONCE = 16
_MOST_PARAMETERS = 30_000  # SQLite stops at 32,766


class Journal:
    """`stored` are the ordinals that have a row in the file; it is kept true with every commit."""

    def __init__(self, connection: apsw.Connection, questions: int, stored: Bitmap, pending: Iterable[int]) -> None:
        self._connection = connection
        self._stored = stored
        self._columns = min(questions, ANSWER_COLUMNS)
        self._pending = set(pending)  # bounded by the window: interviews in flight with an answer on disk
        self._kinds_seen: list[set[type]] = [set() for _ in range(self._columns)]
        self._interviews = _Insert("interviews", 6 + self._columns + 1)
        self._details = _Insert("details", 2)

    def commit(self, rows: list[Row], records: Iterable[tuple[int, AnswerRecord]]) -> None:
        """Seal `rows` and keep the answers of interviews still in flight; durable when this returns."""
        with self._connection:
            self._write_records(records)
            if rows:
                self._forget_earlier(rows)
                self._write_rows(rows)
                self._note_kinds(rows)
                self._count(rows)
        for row in rows:
            self._stored.add(row.ordinal)

    def _write_rows(self, rows: list[Row]) -> None:
        self._interviews.write(self._connection, [_columns(row) for row in rows])
        self._details.write(self._connection, [(row.ordinal, row.detail) for row in rows])
        failures = [(r.ordinal, f.question, f.cause.value, f.message) for r in rows for f in r.failures]
        if failures:
            self._connection.executemany("INSERT INTO failures VALUES(?, ?, ?, ?)", failures)

    def _write_records(self, records: Iterable[tuple[int, AnswerRecord]]) -> None:
        encoded = [(ordinal, record.question, encode_record(record)) for ordinal, record in records]
        if encoded:
            self._connection.executemany("INSERT OR REPLACE INTO pending VALUES(?, ?, ?)", encoded)
            self._pending.update(ordinal for ordinal, _, _ in encoded)

    def _forget_earlier(self, rows: list[Row]) -> None:
        """Drop what these rows replace: their answers in flight, and an earlier attempt's failures."""
        if self._pending:
            sealed = [(row.ordinal,) for row in rows if row.ordinal in self._pending]
            self._connection.executemany("DELETE FROM pending WHERE ordinal = ?", sealed)
            self._pending.difference_update(ordinal for (ordinal,) in sealed)
        replaced = [(row.ordinal,) for row in rows if row.ordinal in self._stored]
        if replaced:
            self._connection.executemany("DELETE FROM failures WHERE ordinal = ?", replaced)

    def _note_kinds(self, rows: list[Row]) -> None:
        """Keep, for each answer column, what kinds of values it holds: filters are exact in SQL only where known."""
        for position, seen in enumerate(self._kinds_seen):
            types: set[type] = {type(row.answers[position]) for row in rows}
            if types <= seen:
                continue
            seen |= types
            kinds = frozenset[Kind]().union(*(_KINDS_OF_TYPE[kind] for kind in seen))
            self._connection.execute(
                "UPDATE questions SET kinds = kinds | ? WHERE position = ?", (kinds_to_bits(kinds), position)
            )

    def _count(self, rows: list[Row]) -> None:
        replaced = sum([row.ordinal in self._stored for row in rows])
        # Only failed interviews are ever run again.
        added: dict[str, float] = {
            "done": len(rows) - replaced,
            "failed": sum([row.status for row in rows]) - replaced,
        }
        usages = [row.usage for row in rows]
        for name in Usage.__struct_fields__:
            added[name] = sum([getattr(usage, name) for usage in usages])
        self._connection.executemany(
            "UPDATE counters SET value = value + ? WHERE name = ?",
            ((value, name) for name, value in added.items() if value),
        )


class _Insert:
    """Many rows a statement. SQLite's library gives up Python's lock for every statement, and getting it back from a
    busy event loop is what an insert mostly costs."""

    def __init__(self, table: str, columns: int) -> None:
        places = f"({', '.join('?' * columns)})"
        self._at_once = max(1, min(_MOST_ROWS_AT_ONCE, _MOST_PARAMETERS // columns))
        self._one = f"INSERT OR REPLACE INTO {table} VALUES {places}"
        self._many = f"INSERT OR REPLACE INTO {table} VALUES {', '.join([places] * self._at_once)}"

    def write(self, connection: apsw.Connection, rows: list[tuple[SqlValue, ...]]) -> None:
        whole = len(rows) - len(rows) % self._at_once
        for first in range(0, whole, self._at_once):
            connection.execute(self._many, tuple(chain.from_iterable(rows[first : first + self._at_once])))
        if whole < len(rows):
            connection.executemany(self._one, rows[whole:])


def _columns(row: Row) -> tuple[SqlValue, ...]:
    head = (row.ordinal, row.iteration, row.agent, row.scenario, row.model, int(row.status))
    return (*head, *row.answers, row.more)


def run_started(connection: apsw.Connection, started_at: float, reused: int) -> int:
    """Note that a run of this file began; returns its number."""
    with connection:
        connection.execute("INSERT INTO runs(started_at, reused) VALUES(?, ?)", (started_at, reused))
    return connection.last_insert_rowid()


def run_ended(
    connection: apsw.Connection, number: int, ended_at: float, peak_bytes: int, outcome: str, endpoints: str
) -> None:
    """Note how a run ended. On a full disk the note is lost, and nothing else: the run's own error must stand."""
    with suppress(apsw.FullError, apsw.IOError), connection:
        connection.execute(
            "UPDATE runs SET ended_at = ?, peak_memory_bytes = ?, outcome = ?, endpoints = ? WHERE number = ?",
            (ended_at, peak_bytes, outcome, endpoints, number),
        )
