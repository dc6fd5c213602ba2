"""Reading a run file, also while it is being written. Covers: the connection, short reads, and the SQL of each.

A read never stays open while its rows are used: one held open would keep the writer's WAL growing without bound.
Does not cover: what a row means to the user, filters and order (results), or writing (store.journal).
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from headrace.errors import RunFileBusy, RunFileError
from headrace.expressions import Kind, Sql
from headrace.store.connections import open_reader, translated_errors
from headrace.store.creation import bits_to_kinds
from headrace.store.rows import ANSWER_COLUMNS
from headrace.survey.values import SqlValue

# One interview as read: key, ordinal, iteration, model, status, agent, scenario, more, then the wanted answers.
Fetched: TypeAlias = tuple[Any, ...]
KEY, ORDINAL, ITERATION, MODEL, STATUS, AGENT, SCENARIO, MORE, ANSWERS = range(9)
FailureRow: TypeAlias = tuple[int, int, str, str]

# SQLite leaves out a LEFT JOIN whose columns nobody uses, so it costs nothing to write both.
_LISTS = " LEFT JOIN agents a ON a.position = i.agent LEFT JOIN scenarios s ON s.position = i.scenario"
_MOST_ROWS, _MOST_VALUES = 256, 65_536
_ABANDONED: list[apsw.Connection] = []
_numbers = itertools.count()


class Reader:
    """One read-only connection, opened when first needed; safe to share between threads, never used across a fork.

    A reader that was closed opens the file again when it is used again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: apsw.Connection | None = None
        self._using = threading.RLock()
        self._pid = os.getpid()

    @contextmanager
    def snapshot(self) -> Generator[apsw.Connection]:
        """The connection, inside one short transaction: everything read in it is of the same moment."""
        self._leave_to_parent()
        with self._using, _translated(self.path):
            connection = self._opened()
            with connection:
                yield connection

    def close(self) -> None:
        self._leave_to_parent()
        with self._using:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = open_reader(self.path)
        return self._connection

    def _leave_to_parent(self) -> None:
        if self._pid == os.getpid():
            return
        # SQLite forbids even closing a connection made before the fork: it is kept, unused, for good.
        if self._connection is not None:
            _ABANDONED.append(self._connection)
        self._connection, self._using, self._pid = None, threading.RLock(), os.getpid()


@contextmanager
def _translated(path: Path) -> Generator[None]:
    with translated_errors(path):
        try:
            yield
        except (apsw.BusyError, apsw.LockedError):
            raise RunFileBusy(
                f"{path} is locked by another process.", path=path, fix="Try again when that is done."
            ) from None


def _rows(connection: apsw.Connection, sql: str, values: tuple[SqlValue, ...] = ()) -> list[Any]:
    """A statement's rows, all of them: callers bound their number."""
    return connection.execute(sql, values).fetchall()


def check_is_set_up(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose plan is not written to the end: it has nothing to show."""
    tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name IN ('boxes', 'results')").get
    if tables < 2 or not connection.execute("SELECT count(*) FROM boxes").get:
        raise RunFileError(
            f"{path} is still being set up.", path=path, fix="Try again in a moment, or run the job again."
        )


# --- interviews


@dataclass(frozen=True, slots=True)
class Base:
    """Which interviews, in which order: all by ordinal, or those of a table of chosen ordinals by position."""

    tables: str = "interviews i"
    key: str = "i.ordinal"

    @property
    def is_everything(self) -> bool:
        return self.key == "i.ordinal"


EVERYTHING = Base()
TRUE = Sql("1", ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of each interview is to be read; what is not wanted is NULL."""

    answers: tuple[int, ...] = ()
    agent: bool = False
    scenario: bool = False
    more: bool = False

    @property
    def page_rows(self) -> int:
        """How many rows a page has: fewer where a row is wide."""
        return max(16, min(_MOST_ROWS, _MOST_VALUES // (len(self.answers) + ANSWERS)))

    @property
    def columns(self) -> str:
        parts = (("a.fields", self.agent), ("s.fields", self.scenario), ("i.more", self.more))
        chosen = [sql if is_wanted else "NULL" for sql, is_wanted in parts]
        chosen += [f"i.a{position}" for position in self.answers]
        return ", ".join(["i.ordinal", "i.iteration", "i.model", "i.status", *chosen])


def everything_of(questions: int) -> Wanted:
    """All that is known of an interview but its detail."""
    columns = tuple(range(min(questions, ANSWER_COLUMNS)))
    return Wanted(answers=columns, agent=True, scenario=True, more=questions > ANSWER_COLUMNS)


def fetch(
    connection: apsw.Connection, base: Base, wanted: Wanted, condition: Sql, after: int, limit: int
) -> list[Fetched]:
    """The next rows behind the key `after`, at most `limit` of them."""
    return _rows(
        connection,
        f"SELECT {base.key}, {wanted.columns} FROM {base.tables}{_LISTS}"
        f" WHERE {base.key} > ? AND {condition.text} ORDER BY {base.key} LIMIT ?",
        (after, *condition.parameters, limit),
    )


def key_before(connection: apsw.Connection, base: Base, condition: Sql, index: int) -> int | None:
    """The key behind which the row at `index` is the first; None where there are no more than `index` rows."""
    if condition is TRUE and (not base.is_everything or _has_no_holes(connection)):
        return index - 1 if base.is_everything else index
    key = connection.execute(
        f"SELECT {base.key} FROM {base.tables}{_LISTS} WHERE {condition.text} ORDER BY {base.key} LIMIT 1 OFFSET ?",
        (*condition.parameters, index),
    ).get
    return None if key is None else key - 1


def count(connection: apsw.Connection, base: Base, condition: Sql) -> int:
    if condition is TRUE and base.is_everything:
        return _kept_count(connection)
    found = f"SELECT count(*) FROM {base.tables}{_LISTS} WHERE {condition.text}"
    return connection.execute(found, condition.parameters).get


def _kept_count(connection: apsw.Connection) -> int:
    return connection.execute("SELECT value FROM counters WHERE name = 'done'").get


def _has_no_holes(connection: apsw.Connection) -> bool:
    last = connection.execute("SELECT max(ordinal) FROM interviews").get
    return last is None or last + 1 == _kept_count(connection)


# --- ordered choices


def choose(
    connection: apsw.Connection, base: Base, condition: Sql, order: list[str], start: int, stop: int | None
) -> Base:
    """A temporary table, on disk, of the ordinals that meet the condition, in this order and between these places."""
    name = _new_table(connection, "chosen", "ordinal")
    limit = -1 if stop is None else stop - start
    connection.execute(
        f"INSERT INTO temp.{name}(ordinal) SELECT i.ordinal FROM {base.tables}{_LISTS} WHERE {condition.text}"
        f" ORDER BY {', '.join([*order, base.key])} LIMIT ? OFFSET ?",
        (*condition.parameters, limit, start),
    )
    return _base_of(name)


class KeyTable:
    """Ordinals with sort keys that only Python can tell, collected page by page in a temporary table."""

    def __init__(self, connection: apsw.Connection, keys: int) -> None:
        self._columns = [f"k{number}" for number in range(keys)]
        self._name = _new_table(connection, "keyed", "ordinal", *self._columns)
        places = ", ".join("?" * (keys + 1))
        self._insert = f"INSERT INTO temp.{self._name}({', '.join(['ordinal', *self._columns])}) VALUES({places})"

    def add(self, connection: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        connection.executemany(self._insert, rows)

    def choose(self, connection: apsw.Connection, descending: list[bool], start: int, stop: int | None) -> Base:
        name = _new_table(connection, "chosen", "ordinal")
        order = [f"{column}{' DESC' * is_down}" for column, is_down in zip(self._columns, descending, strict=True)]
        connection.execute(
            f"INSERT INTO temp.{name}(ordinal) SELECT ordinal FROM temp.{self._name}"
            f" ORDER BY {', '.join([*order, 'position'])} LIMIT ? OFFSET ?",
            (-1 if stop is None else stop - start, start),
        )
        connection.execute(f"DROP TABLE temp.{self._name}")
        return _base_of(name)


def _new_table(connection: apsw.Connection, kind: str, *columns: str) -> str:
    name = f"{kind}{next(_numbers)}"
    connection.execute(f"CREATE TEMP TABLE {name}(position INTEGER PRIMARY KEY, {', '.join(columns)})")
    return name


def _base_of(name: str) -> Base:
    return Base(f"temp.{name} c CROSS JOIN interviews i ON i.ordinal = c.ordinal", "c.position")


# --- what stands beside the interviews


def read_detail(connection: apsw.Connection, ordinal: int) -> bytes | None:
    return connection.execute("SELECT detail FROM details WHERE ordinal = ?", (ordinal,)).get


def failures_after(connection: apsw.Connection, ordinal: int, question: int, limit: int) -> list[FailureRow]:
    """The next failures behind this one, in order."""
    return _rows(
        connection,
        "SELECT ordinal, question, cause, message FROM failures WHERE (ordinal, question) > (?, ?)"
        " ORDER BY ordinal, question LIMIT ?",
        (ordinal, question, limit),
    )


def failures_of(connection: apsw.Connection, ordinals: list[int]) -> list[FailureRow]:
    """The failures of these interviews, in order; the caller bounds the list."""
    return _rows(
        connection,
        "SELECT ordinal, question, cause, message FROM failures"
        " WHERE ordinal IN (SELECT value FROM json_each(?)) ORDER BY ordinal, question",
        (json.dumps(ordinals),),
    )


def field_names(connection: apsw.Connection, owner: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM fields WHERE owner = ? ORDER BY name", (owner,))]


def field_kinds(connection: apsw.Connection, owner: str, name: str) -> frozenset[Kind]:
    """The kinds a field of agents or scenarios holds. Some rows may lack it, so NULL is always among them."""
    bits = connection.execute("SELECT kinds FROM fields WHERE owner = ? AND name = ?", (owner, name)).get
    return bits_to_kinds(bits or 0) | {Kind.NULL}


def answer_kinds(connection: apsw.Connection, position: int) -> frozenset[Kind] | None:
    """The kinds an answer has held so far; None where that is not kept."""
    if position >= ANSWER_COLUMNS:
        return None
    found = _rows(connection, "SELECT kinds, holds_bools FROM questions WHERE position = ?", (position,))
    bits, holds_bools = found[0]
    kinds = bits_to_kinds(bits)
    return (kinds - {Kind.INT}) | {Kind.BOOL} if holds_bools and Kind.INT in kinds else kinds


def read_counters(connection: apsw.Connection) -> dict[str, int]:
    return dict(_rows(connection, "SELECT name, value FROM counters"))


def read_runs(connection: apsw.Connection) -> tuple[int, float, int | None]:
    """Of all runs of this file: what the latest reused, seconds spent, and the highest memory in bytes."""
    reused = connection.execute("SELECT reused FROM runs ORDER BY number DESC LIMIT 1").get
    sums = "SELECT coalesce(sum(ended_at - started_at), 0.0), max(peak_memory_bytes) FROM runs"
    seconds, peak_bytes = _rows(connection, sums)[0]
    return reused or 0, seconds, peak_bytes
