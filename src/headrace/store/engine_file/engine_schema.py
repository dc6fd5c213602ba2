"""The tables of an engine file, and the states of an agent run as they are written.

Any SQLite tool can read them. Does not cover: filling them (runs, steps, notes).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from enum import Enum, IntEnum
from pathlib import Path

import apsw

from headrace.store.formats import ENGINE_FILE, check_format
from headrace.store.history.stored_history import MEMORY_HISTORY, add_history, has_history
from headrace.store.live_file import LiveFile
from headrace.store.schema_check import accepted_tables, check_schema, one_line
from headrace.store.transactions import transaction

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
                  result_blob INTEGER, error TEXT NOT NULL DEFAULT '', submitted_at REAL NOT NULL, ended_at REAL,
                  preempted INTEGER NOT NULL DEFAULT 0);
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
# Files that were made before it was there get it when one is opened.
_SURVEYS = """
CREATE TABLE surveys(path TEXT PRIMARY KEY, plan TEXT NOT NULL, priority INTEGER NOT NULL, options TEXT NOT NULL,
                     state TEXT NOT NULL, done INTEGER NOT NULL, total INTEGER NOT NULL, error TEXT NOT NULL,
                     begun_at REAL NOT NULL) WITHOUT ROWID
"""
_PREEMPTED = "preempted INTEGER NOT NULL DEFAULT 0"
# As files were made first; the columns are added when one is opened.
_FIRST = one_line(_TABLES).replace(" mark BLOB,", "").replace(f", {_PREEMPTED}", "")
_ACCEPTED = accepted_tables(_TABLES, _FIRST, _SURVEYS, MEMORY_HISTORY)
_LATER_TABLES = frozenset({"surveys", "memory_history"})


class Effect(IntEnum):
    """What a step does whose start is journaled, in `steps.has_side_effect`. All other steps have 0."""

    OF_A_FUNCTION = 1
    OF_A_PROGRAM = 2


class RunState(Enum):
    """The state of an agent run on disk. The first five are unfinished: the run goes on by itself, or when its caller
    acts.
    """

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

    @property
    def word(self) -> str:
        """The state as people and scripts read it; the value, which is on disk, says one of them in a sentence."""
        return "undecided" if self is RunState.UNDECIDED else self.value


_UNFINISHED = frozenset({RunState.WAITING, RunState.RUNNING, RunState.SLEEPING, RunState.RECEIVING, RunState.UNDECIDED})
FAILED_STATES = frozenset(set(RunState) - _UNFINISHED - {RunState.DONE, RunState.CANCELLED})


def standing(counts: Mapping[RunState, int], *, is_open: bool) -> dict[RunState, int]:
    """How many runs are in each state, given what is on disk. Those that ran when their engine was killed wait: the
    next engine goes on with them where they were.
    """
    found = dict(counts)
    if not is_open and RunState.RUNNING in found:
        found[RunState.WAITING] = found.pop(RunState.RUNNING) + found.get(RunState.WAITING, 0)
    return found


def check_is_engine_file(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is no engine file, or whose tables are not those that `create_engine_tables` makes."""
    check_format(connection, path, ENGINE_FILE)
    check_schema(connection, path, _ACCEPTED, {}, _LATER_TABLES)


def add_what_came_later(live: LiveFile) -> None:
    """Add the columns and tables that a file lacks because an older version made it."""
    _add_column(live, "steps", "mark BLOB")
    _add_column(live, "runs", _PREEMPTED)
    if not live.connection.execute("PRAGMA table_info(surveys)").fetchall():
        with live.transaction():
            live.connection.execute(_SURVEYS)
    if not has_history(live.connection):
        with live.transaction():
            add_history(live.connection)


def _add_column(live: LiveFile, table: str, column: str) -> None:
    if column.split()[0] not in {name for _, name, *_ in live.connection.execute(f"PRAGMA table_info({table})")}:
        with live.transaction():
            live.connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")


def create_engine_tables(connection: apsw.Connection) -> None:
    """Make the tables of a new file. Its `token` makes its idempotency keys differ from those of every other file."""
    with transaction(connection):
        connection.execute(
            f"PRAGMA application_id={ENGINE_FILE.application_id}; PRAGMA user_version={ENGINE_FILE.version};"
        )
        connection.execute(_TABLES)
        connection.execute(_SURVEYS)
        add_history(connection)
        meta = (secrets.token_hex(8), time.time())
        connection.execute("INSERT INTO meta VALUES('token', ?), ('made_at', ?)", meta)
