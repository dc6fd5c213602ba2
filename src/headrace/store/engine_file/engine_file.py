"""An engine file opened to be written: locked, made where it is new, told apart from a survey's run file.

Covers: the file from `open` to `close`, and reading it back. Does not cover: writing rows
(store.engine_file.engine_journal).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import apsw
import msgspec

from headrace.errors import NotARunFile, RunFileError, RunFileTooNew
from headrace.priority import Priority
from headrace.steady_clock import ClockNote
from headrace.store.connections import check_is_run_file, open_checked_reader, roll_back
from headrace.store.contents import damaged, decoding, raw_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_journal import Write, commit
from headrace.store.engine_file.engine_schema import (
    ENGINE_APPLICATION_ID,
    ENGINE_VERSION,
    Effect,
    RunState,
    add_later_columns,
    check_engine_file_schema,
    create_engine_tables,
)
from headrace.store.live_file import LiveFile
from headrace.store.lock import WriterLock
from headrace.store.making import made_whole
from headrace.store.private import make_directory
from headrace.store.run_file.run_schema import APPLICATION_ID
from headrace.store.transactions import transaction
from headrace.survey.values import SqlValue

_COLUMNS = (
    "parent, id, name, kind, arguments, priority, state,"
    " epoch, preemptions, deaths, failures, executed_s, resume_at, error"
)


# A run's number and its counts leave room above: a forged one that SQLite's integers end at cannot be counted on.
_Id: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Pid: TypeAlias = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
_Checkpoints: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]  # marks of steps have 4 bytes for it


class RunRow(msgspec.Struct, frozen=True):
    """One agent run as it is on disk, without its result."""

    parent: int | None
    id: int
    name: str
    kind: str
    arguments: bytes
    priority: Priority
    state: RunState
    epoch: int
    preemptions: int
    deaths: int
    failures: int
    executed_s: float
    resume_at: float
    error: str


_Row = TypeVar("_Row")
_RunTypes = tuple[
    _Id | None, _Id, str, str, bytes, Priority, RunState, _Count, _Count, _Count, _Count, float, float, str
]


class StoredStep(msgspec.Struct, frozen=True):
    """`result` is None where the step has started and not finished, or where its result is kept apart. A side effect
    that has neither started nor finished is wanted once more.
    """

    name: str
    result: bytes | None
    is_started: bool
    is_finished: bool
    has_side_effect: bool
    mark: bytes


class EngineFile:
    """An open engine file. Two connections: the journal's thread writes, the engine's loop reads."""

    def __init__(self, path: Path, lock: WriterLock) -> None:
        self.path = path
        self._reader = open_checked_reader(path, check_is_engine_file)
        try:
            self.token = self._one(str, "SELECT value FROM meta WHERE key = 'token'") or ""
            self.live = _opened_live(path, lock)
        except BaseException:
            self._reader.close()
            raise
        self.connection = self.live.connection

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

    def former_warden(self) -> int | None:
        """The process that the workers of the last engine ended with, or are about to."""
        return self._one(_Pid, "SELECT value FROM meta WHERE key = 'warden'")

    def clock_note(self) -> ClockNote | None:
        """None where the file is new, or from a version that had no such clock."""
        noted = self._one(str, "SELECT value FROM meta WHERE key = 'clock'")
        with decoding(self.path, "the time that it notes"):
            return None if noted is None else msgspec.json.decode(noted, type=ClockNote)

    def commit(self, writes: Iterable[Write]) -> None:
        """All of them or none, on disk when it returns, and in a file that has its name: what comes after is told to
        others as done.
        """
        commit(self.connection, writes, self.live.check_is_mine)
        self.live.check_is_in_place()
        self.live.keep_log_short()

    def close(self) -> None:
        """Leave one plain file behind, where no reader is in the way."""
        self._reader.close()
        self.live.close()

    def highest(self, table: str) -> int:
        return self._one(_Count, f"SELECT max(0, max(id)) FROM {table}") or 0

    def run(self, id: int) -> RunRow | None:
        return next(self._rows("WHERE id = ?", (id,)), None)

    def run_by_key(self, key: bytes) -> RunRow | None:
        return next(self._rows("WHERE key = ?", (key,)), None)

    def keys(self) -> Iterator[bytes]:
        return (key for (key,) in self._read(tuple[bytes], "SELECT key FROM runs WHERE key IS NOT NULL"))

    def backlog(self, priority: int, kinds: list[str], most: int) -> list[RunRow]:
        """Runs of these kinds that wait for their turn, in the order they came; at most `most`. A child is not among
        them before its parent has ended.
        """
        where = "WHERE state = 'waiting' AND ended_at IS NULL AND priority = ? AND parent IS NULL"
        where += f" AND kind IN ({', '.join('?' * len(kinds))}) ORDER BY id LIMIT ?"
        return list(self._rows(where, (priority, *kinds, most)))

    def children(self, parents: list[int]) -> list[RunRow]:
        """Those that these runs have asked for and that wait on disk; as many as they ask for at once."""
        where = f"WHERE state = 'waiting' AND ended_at IS NULL AND parent IN ({', '.join('?' * len(parents))})"
        return list(self._rows(where, tuple(parents)))

    def unfinished_children(self, parent: int) -> list[int]:
        """Whatever their state; as many as one run has asked for at once."""
        sql = "SELECT id FROM runs WHERE parent = ? AND ended_at IS NULL"
        return [child for (child,) in self._read(tuple[int], sql, (parent,))]

    def unfinished(self, most: int) -> list[RunRow]:
        return list(self._rows("WHERE ended_at IS NULL ORDER BY id LIMIT ?", (most,)))

    def counts(self) -> dict[tuple[str, str], int]:
        """Unfinished runs by kind and state; as many entries as there are kinds and states."""
        sql = "SELECT kind, state, count(*) FROM runs WHERE ended_at IS NULL GROUP BY kind, state"
        return {(kind, state.value): count for kind, state, count in self._read(tuple[str, RunState, int], sql)}

    def next_wake_s(self) -> float | None:
        return self._one(float, "SELECT min(resume_at) FROM runs WHERE state = 'sleeping' AND ended_at IS NULL")

    def steps(self, id: int, most_bytes: int) -> Iterator[StoredStep]:
        """A run's steps; results above `most_bytes` are left where they are, for `step_result`."""
        sql = (
            "SELECT name, CASE WHEN length(result) <= ? THEN result END, started_at IS NOT NULL,"
            " finished_at IS NOT NULL, has_side_effect, mark FROM steps WHERE run = ?"
        )
        types = tuple[str, bytes | None, int, int, int, bytes | None]
        for name, result, is_started, is_finished, effect, mark in self._read(types, sql, (most_bytes, id)):
            yield StoredStep(name, result, bool(is_started), bool(is_finished), bool(effect), mark or b"")

    def step_result(self, id: int, name: str) -> bytes | None:
        sql = "SELECT result, blob FROM steps WHERE run = ? AND name = ? AND finished_at IS NOT NULL"
        return self._value(sql, (id, name))

    def runs_program(self, id: int, name: str) -> bool:
        """Whether this step, whose start is journaled, is a program's run."""
        effect = self._one(int, "SELECT has_side_effect FROM steps WHERE run = ? AND name = ?", (id, name))
        return effect == Effect.OF_A_PROGRAM

    def checkpoint(self, id: int) -> tuple[int, bytes | None]:
        """How many checkpoints it has made, and the last one's state."""
        number = self._one(_Checkpoints, "SELECT number FROM checkpoints WHERE run = ?", (id,)) or 0
        return number, self._value("SELECT state, blob FROM checkpoints WHERE run = ?", (id,)) if number else None

    def result(self, id: int) -> bytes | None:
        return self._value("SELECT result, result_blob FROM runs WHERE id = ?", (id,))

    def first_message(self, id: int, taken: set[int]) -> tuple[int, bytes] | None:
        """The oldest one that nobody has taken; `taken` are those whose removal is not on disk yet."""
        sql = "SELECT id, payload FROM messages WHERE run = ? ORDER BY id"
        return next((row for row in self._read(tuple[int, bytes], sql, (id,)) if row[0] not in taken), None)

    def events(self, most: int) -> list[tuple[float, int | None, str, str, str | None]]:
        """The latest ones, oldest first."""
        sql = "SELECT at, run, what, reason, reading FROM events ORDER BY id DESC LIMIT ?"
        return list(self._read(tuple[float, int | None, str, str, str | None], sql, (most,)))[::-1]

    def usage(self) -> dict[str, float]:
        return dict(self._read(tuple[str, float], "SELECT name, value FROM usage"))

    def _rows(self, where: str, bindings: tuple[SqlValue, ...]) -> Iterator[RunRow]:
        for row in self._read(_RunTypes, f"SELECT {_COLUMNS} FROM runs {where}", bindings):
            run = RunRow(*row)
            if run.parent is not None and run.parent >= run.id:  # runs that are each other's parents wait for ever
                raise damaged(self.path, f"the parent of its run {run.id} is no earlier run, but {run.parent}")
            yield run

    def _read(self, as_type: type[_Row], sql: str, bindings: tuple[SqlValue, ...] = ()) -> Iterator[_Row]:
        """Rows of these types; anything else is the damage of a file that may come from elsewhere."""
        with translated_errors(self.path), decoding(self.path, "what it keeps of its runs"):
            for row in raw_rows(self._reader, sql, bindings):
                yield msgspec.convert(row, as_type)

    def _value(self, sql: str, bindings: tuple[SqlValue, ...]) -> bytes | None:
        found = next(self._read(tuple[bytes | None, int | None], sql, bindings), None)
        if found is None:
            return None
        if found[1] is None:
            return found[0]
        data = self._one(bytes, "SELECT data FROM blobs WHERE id = ?", (found[1],))
        if data is None:
            raise damaged(self.path, f"its large value {found[1]} is missing")
        return data

    def _one(self, as_type: Any, sql: str, bindings: tuple[SqlValue, ...] = ()) -> Any:
        """A value of this type; None where there is none."""
        types: Any = tuple[as_type | None]
        return next(self._read(types, sql, bindings), (None,))[0]


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
