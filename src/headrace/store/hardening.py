"""Hardening: what SQLite may do on a connection to a file of ours, set before its first statement. A file may come from
anywhere, and opening it must run nothing of it.

Covers: views and triggers off, functions in its schema not trusted, nothing attached, lengths bounded; a reader writes
temporary tables alone, and those only inside `scratch`. Does not cover: whether the file's tables are ours
(schema_check), limits on a user's own SQL (store.queries).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

import apsw

from headrace.store.queries.query_clock import QueryClock

Authorizer: TypeAlias = Callable[[int, str | None, str | None, str | None, str | None], int]

_SETTINGS = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,  # but for temporary ones, such as our own `self`
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER: 0,
    # A misspelt "agent.agee" must be an error; by default SQLite would take it for a text.
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,
}
_LIMITS = {
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
    apsw.SQLITE_LIMIT_LENGTH: 256_000_000,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 16_000_000,
    apsw.SQLITE_LIMIT_VDBE_OP: 5_000_000,
}
_READING = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE})
_MOMENTS = frozenset({apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT})
_SCRATCH = frozenset(
    {
        apsw.SQLITE_CREATE_TEMP_TABLE,
        apsw.SQLITE_CREATE_TEMP_VIEW,
        apsw.SQLITE_DROP_TEMP_TABLE,
        apsw.SQLITE_DROP_TEMP_VIEW,
        apsw.SQLITE_INSERT,
        apsw.SQLITE_UPDATE,
        apsw.SQLITE_DELETE,
    }
)
_PRAGMAS = frozenset(
    {
        "application_id", "cache_size", "cell_size_check", "data_version", "freelist_count", "integrity_check",
        "journal_mode", "mmap_size", "page_count", "page_size", "query_only", "quick_check", "schema_version",
        "temp_store", "user_version",
    }
)  # fmt: skip
_NEVER = frozenset(
    {
        apsw.SQLITE_ATTACH,
        apsw.SQLITE_DETACH,
        apsw.SQLITE_CREATE_VTABLE,
        apsw.SQLITE_DROP_VTABLE,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_CREATE_TEMP_TRIGGER,
    }
)
_OTHERS_CODE = frozenset({"load_extension", "fts3_tokenizer"})
# Compares each key of one object with each of the other: two of 16 MB would take hours in one step.
_UNBOUNDED = frozenset({"json_patch", "jsonb_patch"})
# About 1 ms of work. Between two calls nothing of Python runs, and so no Ctrl-C is seen. Each call waits for the GIL,
# which costs up to 5 ms beside a busy thread.
_STEPS_BETWEEN_CALLS = 100_000


def harden(connection: apsw.Connection) -> None:
    """Make a new connection safe to use on any file, without reading the file."""
    for setting, value in _SETTINGS.items():
        connection.config(setting, value)
    for limit, most in _LIMITS.items():
        connection.limit(limit, most)
    connection.execute("PRAGMA cell_size_check=ON")
    if connection.open_flags & apsw.SQLITE_OPEN_READONLY:
        connection.execute("PRAGMA query_only=ON")
        connection.authorizer = _reader_may
        connection.set_progress_handler(_let_signals_in, _STEPS_BETWEEN_CALLS)
    else:
        connection.authorizer = _writer_may


def keep_time(connection: apsw.Connection, clock: QueryClock | None) -> None:
    """Have the clock end what this reader does from now on; None lets it take any time."""
    handler = _let_signals_in if clock is None else partial(_ask, clock)
    connection.set_progress_handler(handler, _STEPS_BETWEEN_CALLS)


@contextmanager
def scratch(connection: apsw.Connection) -> Generator[None]:
    """Let a reader write temporary tables and views inside the block."""
    connection.execute("PRAGMA query_only=OFF")
    try:
        yield
    finally:
        connection.execute("PRAGMA query_only=ON")


@contextmanager
def only_allowed(connection: apsw.Connection, authorizer: Authorizer) -> Generator[None]:
    """Have the connection refuse what this authorizer refuses inside the block."""
    before = connection.authorizer
    connection.authorizer = authorizer
    try:
        yield
    finally:
        connection.authorizer = before


@contextmanager
def vacuuming(connection: apsw.Connection) -> Generator[None]:
    """Let a reader write a copy of its file inside the block: SQLite attaches the new file for that."""
    before = connection.authorizer
    connection.authorizer = None
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 1)
    try:
        with scratch(connection):
            yield
    finally:
        connection.limit(apsw.SQLITE_LIMIT_ATTACHED, _LIMITS[apsw.SQLITE_LIMIT_ATTACHED])
        connection.authorizer = before


def query_may(operation: int, _first: str | None, second: str | None, _database: str | None, _by: str | None) -> int:
    """The authorizer of what only reads."""
    if operation == apsw.SQLITE_FUNCTION and (second in _OTHERS_CODE or second in _UNBOUNDED):
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK if operation in _READING else apsw.SQLITE_DENY


def _reader_may(operation: int, first: str | None, second: str | None, database: str | None, by: str | None) -> int:
    if operation in _MOMENTS or (operation in _SCRATCH and database == "temp"):
        return apsw.SQLITE_OK
    if operation == apsw.SQLITE_PRAGMA:
        return apsw.SQLITE_OK if first in _PRAGMAS else apsw.SQLITE_DENY
    return query_may(operation, first, second, database, by)


def _writer_may(operation: int, _first: str | None, second: str | None, _database: str | None, _by: str | None) -> int:
    if operation in _NEVER or (operation == apsw.SQLITE_FUNCTION and second in _OTHERS_CODE):
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK


def _ask(clock: QueryClock) -> bool:
    clock.check()
    return False


def _let_signals_in() -> bool:
    """Called by SQLite between steps: entering Python is what lets a Ctrl-C be raised."""
    return False
