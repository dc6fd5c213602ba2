"""EngineFile: an engine file opened to be written, from `open` to `close`.

Covers: locking it, making a new one, refusing other files, committing statements. Does not cover: what is read and
written (runs, steps, notes), or when a group of statements is committed (agents.engine.engine_writer).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from pathlib import Path

import apsw

from headrace.errors import NotARunFile, RunFileError, RunFileTooNew
from headrace.store.connections import check_is_run_file, open_checked_reader, roll_back
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_schema import (
    ENGINE_APPLICATION_ID,
    ENGINE_VERSION,
    add_later_columns,
    check_engine_file_schema,
    create_engine_tables,
)
from headrace.store.engine_file.engine_values import BlobWrites, ValueReader, Write
from headrace.store.engine_file.notes import NoteWrites, StoredNotes
from headrace.store.engine_file.runs import RunWrites, StoredRuns
from headrace.store.engine_file.steps import StepWrites, StoredSteps
from headrace.store.live_file import LiveFile
from headrace.store.lock import WriterLock
from headrace.store.making import made_whole
from headrace.store.private import make_directory
from headrace.store.run_file.run_schema import APPLICATION_ID
from headrace.store.transactions import transaction


class Writes:
    """Makes the statements that an EngineWriter commits, by subject."""

    def __init__(self, last_blob: int) -> None:
        blobs = BlobWrites(last_blob)
        self.runs = RunWrites(blobs)
        self.steps = StepWrites(blobs)
        self.notes = NoteWrites()


class EngineFile:
    """An open engine file. Two connections: the journal's thread writes, the engine's loop reads."""

    def __init__(self, path: Path, lock: WriterLock) -> None:
        self.path = path
        self._reader = open_checked_reader(path, check_is_engine_file)
        try:
            self.values = ValueReader(path, self._reader)
            self.token = self.values.one(str, "SELECT value FROM meta WHERE key = 'token'") or ""
            self.live = _opened_live(path, lock)
        except BaseException:
            self._reader.close()
            raise
        self.connection = self.live.connection
        self.runs = StoredRuns(self.values)
        self.steps = StoredSteps(self.values)
        self.notes = StoredNotes(self.values)

    @classmethod
    def open(cls, path: Path) -> EngineFile:
        if path.is_dir():
            raise RunFileError(f"{path} is a directory.", path=path, fix="Give the path of a file.")
        make_directory(path.parent)
        lock = WriterLock(path, meanwhile="an engine of another path can run beside it")
        try:
            with translated_errors(path):
                _make_where_missing(path)
                return cls(path, lock)
        except BaseException:
            lock.release()
            raise

    def commit(self, writes: Iterable[Write]) -> None:
        """Write all of them or none. They are on disk when this returns, in a file that is still at its path: only then
        may the engine say that they are done.
        """
        execute = self.connection.execute
        with self.live.transaction():
            for sql, bindings in writes:
                execute(sql, bindings)
        self.live.check_is_in_place()

    def close(self) -> None:
        """Leave one plain file behind, where no reader is in the way."""
        self._reader.close()
        self.live.close()


def _opened_live(path: Path, lock: WriterLock) -> LiveFile:
    live = LiveFile(path, lock)
    try:
        add_later_columns(live.connection)
    except BaseException:
        live.close()
        raise
    return live


def _make_where_missing(path: Path) -> None:
    roll_back(path)  # what is left may be an empty file
    if not path.exists() or path.stat().st_size == 0:
        with made_whole(path) as empty, transaction(empty):
            create_engine_tables(empty, secrets.token_hex(8), time.time())


def check_is_engine_file(connection: apsw.Connection, path: Path) -> None:
    try:
        application = connection.execute("PRAGMA application_id").get
        version = connection.execute("PRAGMA user_version").get
    except apsw.NotADBError:
        raise NotARunFile(f"{path} is not an engine file.", path=path, fix="Use another path.") from None
    if application == APPLICATION_ID:
        raise NotARunFile(
            f"{path} is a survey's run file, not an engine's.",
            path=path,
            fix="Read it with Results.open(path), run it with job.run(path) or engine.run(job, path); give the engine"
            " a path of its own.",
        )
    if application != ENGINE_APPLICATION_ID:
        raise NotARunFile(f"{path} is a database of another program.", path=path, fix="Use another path.")
    if version > ENGINE_VERSION:
        raise RunFileTooNew(
            f"{path} was written by a newer Headrace (file version {version}, known here: {ENGINE_VERSION}).",
            path=path,
            fix="Open it with the Headrace that wrote it, or a newer one.",
        )
    check_engine_file_schema(connection, path)


def check_is_ours(connection: apsw.Connection, path: Path) -> None:
    """Refuse what is neither a run file nor an engine file of a version we know."""
    (check_is_engine_file if is_engine_file(connection) else check_is_run_file)(connection, path)


def is_engine_file(connection: apsw.Connection) -> bool:
    try:
        return connection.pragma("application_id") == ENGINE_APPLICATION_ID
    except apsw.NotADBError:
        return False  # the check of a run file says what it is instead
