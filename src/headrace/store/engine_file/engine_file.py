"""EngineFile: an engine file opened to be written, from `open` to `close`.

Covers: locking it, making a new one, refusing other files, committing statements. Does not cover: what is read and
written (runs, steps, notes), or when a group of statements is committed (agents.engine.engine_writer).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headrace.store.connections import open_reader
from headrace.store.engine_file.engine_schema import add_what_came_later, check_is_engine_file, create_engine_tables
from headrace.store.engine_file.engine_surveys import StoredSurveys, SurveyWrites
from headrace.store.engine_file.engine_values import BlobWrites, ValueReader, Write
from headrace.store.engine_file.notes import NoteWrites, StoredNotes
from headrace.store.engine_file.runs import RunWrites, StoredRuns
from headrace.store.engine_file.steps import StepWrites, StoredSteps
from headrace.store.history.stored_history import HistoryWriter, stored_bytes
from headrace.store.live_file import LiveFile, make_where_missing, opening
from headrace.store.lock import WriterLock


class Writes:
    """Makes the statements that an EngineWriter commits, by subject."""

    def __init__(self, last_blob: int) -> None:
        blobs = BlobWrites(last_blob)
        self.runs = RunWrites(blobs)
        self.steps = StepWrites(blobs)
        self.notes = NoteWrites()
        self.surveys = SurveyWrites()


class EngineFile:
    """An open engine file. It has two connections: the writer's thread writes, the engine's loop reads."""

    def __init__(self, path: Path, lock: WriterLock) -> None:
        self.path = path
        self._reader = open_reader(path, check_is_engine_file)
        try:
            self.values = ValueReader(path, self._reader)
            self.token = self.values.one(str, "SELECT value FROM meta WHERE key = 'token'") or ""
            self.live = LiveFile(path, lock, add_what_came_later)
        except BaseException:
            self._reader.close()
            raise
        self.connection = self.live.connection
        self.runs = StoredRuns(self.values)
        self.steps = StoredSteps(self.values)
        self.notes = StoredNotes(self.values)
        self.surveys = StoredSurveys(self.values)

    @classmethod
    def open(cls, path: Path) -> EngineFile:
        with opening(path, meanwhile="an engine of another path can run beside it") as lock:
            make_where_missing(path, create_engine_tables)
            return cls(path, lock)

    def commit(self, writes: Iterable[Write]) -> None:
        """Write all of them or none. They are on disk when this returns, in a file that is still at its path: only then
        may the engine say that they are done.
        """
        execute = self.connection.execute
        with self.live.transaction():
            for sql, bindings in writes:
                execute(sql, bindings)
        self.live.check_is_in_place()

    def history(self) -> HistoryWriter:
        """The memory history of this file, for the engine that goes on with it now."""
        return HistoryWriter(self._reader)

    @property
    def size_bytes(self) -> int:
        return stored_bytes(self._reader)

    def close(self) -> None:
        """Leave one plain file behind, where no reader is in the way."""
        self._reader.close()
        self.live.close()
