"""The engine file's tables. Covers: making them, and what the states of a run are called on disk.

Readable with any SQLite tool. Does not cover: filling them (runs, steps, notes).
"""

from __future__ import annotations

from enum import Enum, IntEnum
from pathlib import Path

import apsw

from headrace.store.schema_check import accepted_tables, check_schema

ENGINE_APPLICATION_ID = 0x48445245  # "HDRE": a survey's run file has another
ENGINE_VERSION = 1
MOST_ROW_BYTES = 256_000  # beyond that a value is a blob of its own
MOST_EVENTS_KEPT = 10_000

_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE runs(id INTEGER PRIMARY KEY, parent INTEGER, key BLOB, name TEXT NOT NULL, kind TEXT NOT NULL,
                  arguments BLOB NOT NULL, priority INTEGER NOT NULL, state TEXT NOT NULL,
                  epoch INTEGER NOT NULL DEFAULT 0,
                  preemptions INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,
                  failures INTEGER NOT NULL DEFAULT 0, executed_s REAL NOT NULL DEFAULT 0,
                  resume_at REAL NOT NULL DEFAULT 0, result BLOB,
                  result_blob INTEGER, error TEXT NOT NULL DEFAULT '', submitted_at REAL NOT NULL, ended_at REAL);
CREATE UNIQUE INDEX runs_by_key ON runs(key) WHERE key IS NOT NULL;
CREATE INDEX unfinished ON runs(state, priority, id) WHERE ended_at IS NULL;
CREATE TABLE steps(run INTEGER NOT NULL, name TEXT NOT NULL, result BLOB, blob INTEGER,
                   has_side_effect INTEGER NOT NULL, started_at REAL, finished_at REAL, mark BLOB,
                   PRIMARY KEY(run, name)) WITHOUT ROWID;
CREATE TABLE checkpoints(run INTEGER PRIMARY KEY, number INTEGER NOT NULL, state BLOB, blob INTEGER, made_at REAL);
CREATE TABLE blobs(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE messages(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, payload BLOB NOT NULL, sent_at REAL NOT NULL);
CREATE INDEX messages_of_run ON messages(run, id);
CREATE TABLE usage(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE events(id INTEGER PRIMARY KEY, at REAL NOT NULL, run INTEGER, what TEXT NOT NULL, reason TEXT NOT NULL,
                    reading TEXT);
"""
_WITHOUT_MARKS = _TABLES.replace(" mark BLOB,", "")  # as files were made first; the column is added when one is opened
_ACCEPTED = accepted_tables(_TABLES, _WITHOUT_MARKS)


class Effect(IntEnum):
    """What a step whose start is journaled does: `steps.has_side_effect`. The others have 0."""

    OF_A_FUNCTION = 1
    OF_A_PROGRAM = 2


class RunState(Enum):
    """What became of an agent run. The first five are unfinished: it goes on by itself, or when someone acts."""

    WAITING = "waiting"
    RUNNING = "running"
    SLEEPING = "sleeping"
    RECEIVING = "waiting for a message"
    UNDECIDED = "a side effect has started and nobody knows whether it happened"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    LOST = "lost"
    BUDGET_TOO_SMALL = "memory budget too small"

    @property
    def is_final(self) -> bool:
        return self not in _UNFINISHED


_UNFINISHED = frozenset({RunState.WAITING, RunState.RUNNING, RunState.SLEEPING, RunState.RECEIVING, RunState.UNDECIDED})
FAILED_STATES = frozenset(set(RunState) - _UNFINISHED - {RunState.DONE, RunState.CANCELLED})


def check_engine_file_schema(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose tables are not those that `create_engine_tables` makes."""
    check_schema(connection, path, _ACCEPTED, {})


def add_later_columns(connection: apsw.Connection) -> None:
    """To a file that was made before them."""
    if "mark" not in {name for _, name, *_ in connection.execute("PRAGMA table_info(steps)")}:
        connection.execute("ALTER TABLE steps ADD COLUMN mark BLOB")


def create_engine_tables(connection: apsw.Connection, token: str, now_s: float) -> None:
    """`token` is this file's own: idempotency keys of two files never meet."""
    connection.execute(f"PRAGMA application_id={ENGINE_APPLICATION_ID}; PRAGMA user_version={ENGINE_VERSION};")
    connection.execute(_TABLES)
    connection.execute("INSERT INTO meta VALUES('token', ?), ('made_at', ?)", (token, now_s))
