"""Reading a run file, also while it is being written. Covers: the connection, and short reads.

A read transaction never stays open while its rows are used: one held open would keep the writer's log growing without
bound. Does not cover: the queries (interview_queries, details, column_kinds), or writing (run_journal).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec

from headrace.errors import RunFileError, Spelled
from headrace.store.connections import open_reader
from headrace.store.disk_errors import translated_errors
from headrace.store.hardening import keep_time
from headrace.store.kept_names import kept_files
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.bulk.block_counts import BlockCounts
from headrace.store.run_file.run_schema import check_is_run_file
from headrace.store.transactions import transaction
from headrace.survey.values import SqlValue

_ABANDONED: list[apsw.Connection] = []


def open_run_file(path: Path, *, needs_log: bool = True) -> apsw.Connection:
    """Open a connection that only reads a run file; `connections.open_reader` explains `needs_log`."""
    return open_reader(path, check_is_run_file, needs_log=needs_log)


class _OrdinalTest(msgspec.Struct, frozen=True):
    name: str
    function: Callable[[int], bool]

    def define(self, connection: apsw.Connection) -> None:
        function = cast("Any", self.function)  # apsw's types have one that takes anything
        connection.create_scalar_function(self.name, function, 1, deterministic=True)


class Reader:
    """A read-only connection that is opened when first needed. Threads may share it; a forked child opens its own.

    A reader that was closed opens the file again when it is used again, and follows a file that `fresh=True` renamed.
    It refuses another file at the same path: that file's rows would be read with the first one's questions. Its clock,
    or the one that a snapshot is given, ends what takes too long.
    """

    def __init__(self, path: Path, made_at: float | None = None, clock: QueryClock | None = None) -> None:
        self.path = path
        self._clock = clock
        self._made_at = made_at
        self._functions: dict[Hashable, _OrdinalTest] = {}
        self._is_twin = False
        self.blocks = BlockCounts()  # used inside a snapshot
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None  # of the open connection
        self._using = threading.RLock()
        self._pid = os.getpid()

    @contextmanager
    def snapshot(self, clock: QueryClock | None = None) -> Generator[apsw.Connection]:
        """The connection, inside one short transaction: all reads in the block see the same moment."""
        self._leave_to_parent()
        with self._using, translated_errors(self.path, is_read_only=True):
            connection = self._opened()
            with self._timed(connection, clock), transaction(connection):
                yield connection

    def close(self) -> None:
        self._leave_to_parent()
        with self._using:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def twin(self, clock: QueryClock | None = None) -> Reader:
        """A second reader of the same file, with a connection of its own."""
        twin = Reader(self.path, self._made_at, clock)
        twin._functions, twin._is_twin = self._functions, True
        return twin

    def function(self, key: Hashable, make: Callable[[], Callable[[int], bool]]) -> str:
        """The name in SQL of a function that tells whether an ordinal belongs to something; `make` makes it once for a
        key.
        """
        with self._using:
            if key not in self._functions:
                self._functions[key] = _OrdinalTest(f"headrace_{len(self._functions)}", make())
            function = self._functions[key]
            if self._connection is not None:
                function.define(self._connection)
            return function.name

    def _opened(self) -> apsw.Connection:
        connection = self._connection
        if connection is None:
            self._file = _file_at(self.path)
            return self._use(self._connected())
        # For a renamed file SQLite would look for the log of the one that has its path now. One that was removed, or
        # renamed by hand, is read on for as long as it is open; and by a twin, whose temporary tables would be lost.
        is_moved = not (self._is_twin or connection.in_transaction) and _file_at(self.path) != self._file
        if is_moved and (found := self._kept_under()) is not None:
            connection.close()
            return self._use(found)
        return connection

    @contextmanager
    def _timed(self, connection: apsw.Connection, clock: QueryClock | None) -> Generator[None]:
        before = self._clock
        if (clock := clock or before) is None:
            yield
            return
        clock.check()
        self._clock = clock
        keep_time(connection, clock)
        try:
            yield
        finally:
            self._clock = before
            keep_time(connection, before)

    def _use(self, connection: apsw.Connection) -> apsw.Connection:
        for function in self._functions.values():
            function.define(connection)
        self.blocks.clear()
        self._connection = connection
        return connection

    def _connected(self) -> apsw.Connection:
        try:
            connection, made_at = _open(self.path)
        except RunFileError:
            if self._made_at is None or (found := self._kept_under()) is None:
                raise
            return found
        if self._made_at is None or made_at == self._made_at:
            self._made_at = made_at
            return connection
        connection.close()
        if (found := self._kept_under()) is not None:
            return found
        raise RunFileError(
            f"{self.path} was replaced by another run file.",
            path=self.path,
            fix=Spelled("Open it again: Results.open(path).", command="Try again."),
        )

    def _kept_under(self) -> apsw.Connection | None:
        """A connection to the file under the name that `fresh=True` gave it, which becomes the reader's path."""
        for path in kept_files(self.path.resolve()):
            with suppress(RunFileError):
                file = _file_at(path)
                connection, made_at = _open(path)
                if made_at == self._made_at:
                    self.path, self._file = path, file
                    return connection
                connection.close()
        return None

    def _leave_to_parent(self) -> None:
        if self._pid == os.getpid():
            return
        # SQLite forbids even closing a connection made before the fork: it is kept, unused, for good.
        if self._connection is not None:
            _ABANDONED.append(self._connection)
        self._connection, self._using, self._pid = None, threading.RLock(), os.getpid()


def _open(path: Path) -> tuple[apsw.Connection, float]:
    """A connection to a run file, and when that file was made, which tells it from others."""
    connection = open_run_file(path)
    try:
        return connection, connection.execute("SELECT value FROM meta WHERE key = 'created_at'").get
    except BaseException:
        connection.close()
        raise


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def rows(connection: apsw.Connection, sql: str, values: tuple[SqlValue, ...] = ()) -> list[Any]:
    """A statement's rows, all of them: callers bound their number."""
    return connection.execute(sql, values).fetchall()


def check_is_set_up(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose plan is not written to the end: it has nothing to show."""
    if not connection.execute("SELECT count(*) FROM boxes").get:
        raise RunFileError(
            f"{path} is still being set up.", path=path, fix="Try again in a moment, or run the job again."
        )
