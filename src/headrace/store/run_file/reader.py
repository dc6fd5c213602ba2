"""Reading a run file, also while it is being written. Covers: the connection, and short reads.

A read transaction never stays open while its rows are used: one held open would keep the writer's log growing without
bound. Does not cover: the queries (interview_queries, details, column_kinds), or writing (run_journal).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from headrace.errors import RunFileError, Spelled
from headrace.store.connections import open_reader
from headrace.store.disk_errors import translated_errors
from headrace.store.run_file.run_schema import check_is_run_file
from headrace.store.transactions import transaction
from headrace.survey.values import SqlValue

_ABANDONED: list[apsw.Connection] = []


def open_run_file(path: Path, *, needs_log: bool = True) -> apsw.Connection:
    """Open a connection that only reads a run file; `connections.open_reader` explains `needs_log`."""
    return open_reader(path, check_is_run_file, needs_log=needs_log)


class Reader:
    """A read-only connection that is opened when first needed. Threads may share it; a forked child opens its own.

    A reader that was closed opens the file again when it is used again. It refuses another file at the same path: that
    file's rows would be read with the first one's questions.
    """

    def __init__(self, path: Path, made_at: float | None = None) -> None:
        self.path = path
        self._made_at = made_at
        self._connection: apsw.Connection | None = None
        self._using = threading.RLock()
        self._pid = os.getpid()

    @contextmanager
    def snapshot(self) -> Generator[apsw.Connection]:
        """The connection, inside one short transaction: all reads in the block see the same moment."""
        self._leave_to_parent()
        with self._using, translated_errors(self.path):
            connection = self._opened()
            with transaction(connection):
                yield connection

    def close(self) -> None:
        self._leave_to_parent()
        with self._using:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            connection = open_run_file(self.path)
            try:
                self._check_is_the_same(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def twin(self) -> Reader:
        """A second reader of the same file, with a connection of its own."""
        return Reader(self.path, self._made_at)

    def _check_is_the_same(self, connection: apsw.Connection) -> None:
        made_at = connection.execute("SELECT value FROM meta WHERE key = 'created_at'").get
        if self._made_at is not None and made_at != self._made_at:
            raise RunFileError(
                f"{self.path} was replaced by another run file.",
                path=self.path,
                fix=Spelled("Open it again: Results.open(path).", command="Try again."),
            )
        self._made_at = made_at

    def _leave_to_parent(self) -> None:
        if self._pid == os.getpid():
            return
        # SQLite forbids even closing a connection made before the fork: it is kept, unused, for good.
        if self._connection is not None:
            _ABANDONED.append(self._connection)
        self._connection, self._using, self._pid = None, threading.RLock(), os.getpid()


def rows(connection: apsw.Connection, sql: str, values: tuple[SqlValue, ...] = ()) -> list[Any]:
    """A statement's rows, all of them: callers bound their number."""
    return connection.execute(sql, values).fetchall()


def check_is_set_up(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose plan is not written to the end: it has nothing to show."""
    if not connection.execute("SELECT count(*) FROM boxes").get:
        raise RunFileError(
            f"{path} is still being set up.", path=path, fix="Try again in a moment, or run the job again."
        )
