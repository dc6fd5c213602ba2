"""Opening a file of ours with SQLite: run file, engine file and response cache.

Covers: `connect`, where every connection begins, and rolling back the transaction of a killed process. A connection
never crosses a fork.

    reader:  connect read-only ── a transaction to roll back? ──► lock, connect as a writer, SQLite rolls back, close
                  ▲                                                                                             │
                  └─────────────────────────────────── once more ◄──────────────────────────────────────────────┘
    writer:  lock ──► roll_back ──► connect ──► WAL mode

Does not cover: who may write (lock), which kind of file it is (formats), errors in words (disk_errors).
"""

from __future__ import annotations

import os
import shlex
import stat
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias
from weakref import WeakSet

import apsw

from headrace.display import cell_text
from headrace.errors import RunFileBusy, RunFileDamaged, RunFileError
from headrace.memory.reclaiming import dropped_often
from headrace.plain_files.side_files import open_side_file
from headrace.store.disk_errors import (
    cannot_roll_back_here,
    needs_recovery,
    read_failure,
    track,
    translated_errors,
)
from headrace.store.formats import ENGINE_FILE, RUN_FILE, has_format
from headrace.store.hardening import harden
from headrace.store.home import home
from headrace.store.lock import WriterLock
from headrace.store.logs.write_ahead_log import check_log_is_its_own, check_log_is_there, check_log_is_whole

_BUSY_WAIT_MS = 10_000
_LOOK_AGAIN_AFTER_S = 0.02
_WRITER_PAGES_KB = 4_000
READER_PAGES_KB = 2_000
_BESIDE = ("-journal", "-wal", "-shm")
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_WRITER = """
PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=64000000;
"""

_writers: WeakSet[apsw.Connection] = WeakSet()
_in_the_making: list[None] = []  # an entry for each writer that is being opened
_heap_lock = threading.Lock()
_with_pages: WeakSet[apsw.Connection] = WeakSet()  # those that live as long as a run


def keep_pages(connection: apsw.Connection, kilobytes: int) -> None:
    """Let a connection cache so much of its file, until memory is short."""
    connection.execute(f"PRAGMA cache_size={-kilobytes}; PRAGMA mmap_size=0;").fetchall()
    _with_pages.add(connection)


@dropped_often
def release_pages() -> None:
    """Drop the page caches of all connections, from any thread. The GIL is held throughout, so no connection can be
    taken into use meanwhile.
    """
    for connection in list(_with_pages):
        # One in use gives its pages back another time.
        with suppress(apsw.ThreadingViolationError, apsw.ConnectionClosedError):
            connection.release_memory()


def connect(path: Path, *, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """Make a connection to a file that exists. Every connection that sees all of a file of ours is made here."""
    _refuse_odd_file(path)
    refuse_odd_neighbours(path.resolve() if path.is_symlink() else path)  # SQLite looks beside what a link leads to
    return _connected(path, str(path), flags)


def _connect_alone(path: Path) -> apsw.Connection:
    """Make a connection that reads a file as it lies on disk: SQLite opens nothing beside it, and takes no lock."""
    _refuse_odd_file(path)
    name = f"{path.resolve().as_uri()}?immutable=1"
    return _connected(path, name, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _connected(path: Path, name: str, flags: int) -> apsw.Connection:
    try:
        connection = apsw.Connection(name, flags=flags)
    except UnicodeEncodeError:
        raise RunFileError(
            f"The name of {cell_text(str(path), 200)} is not UTF-8, and SQLite opens no other.",
            path=path,
            fix="Rename it.",
        ) from None
    harden(connection)
    track(connection)
    connection.set_busy_timeout(_BUSY_WAIT_MS)
    return connection


def _refuse_foreign_log(path: Path) -> None:
    """Refuse a file whose neighbour `-wal` is another file's. Without a log this costs a look at its name."""
    with_log = partial(connect, path, flags=apsw.SQLITE_OPEN_READONLY)
    check_log_is_its_own(path, partial(_connect_alone, path), with_log)


def _refuse_odd_file(path: Path) -> None:
    """Refuse what is not a regular file: SQLite waits for a FIFO."""
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "not a regular file"
        raise RunFileError(f"{path} is {what}.", path=path, fix="Give the path of a file.")


def refuse_odd_neighbours(path: Path) -> None:
    """Refuse what is not a regular file under the name of a journal, a log or its index beside this path, at which
    there may be nothing. One with a second name is refused too: SQLite would empty what may be another file of the
    user's.
    """
    for suffix in _BESIDE:
        beside = path.with_name(path.name + suffix)
        try:
            found = beside.lstat()
        except OSError:
            continue  # there is none, or SQLite says why it cannot be had
        if not stat.S_ISREG(found.st_mode):
            raise RunFileError(
                f"{beside} is a link, a directory, a FIFO or the like, and {path} cannot be opened beside it.",
                path=path,
                fix="Neither Headrace nor SQLite makes such a file: find out who did, then move it away.",
            )
        if found.st_nlink > 1:
            own, copy = shlex.quote(str(beside)), shlex.quote(f"{beside}.copy")
            raise RunFileError(
                f"{beside} has a second name elsewhere (a hard link), and SQLite would change that file too.",
                path=path,
                fix=f"If it belongs to {path.name}, as in a copy by links, give it content of its own: cp {own} {copy}"
                f" && mv {copy} {own}. If not, move it away.",
            )


def has_writer() -> bool:
    """Whether this process has a file of ours open for writing."""
    return bool(_in_the_making) or any(_is_open(connection) for connection in list(_writers))


def _is_open(connection: apsw.Connection) -> bool:
    try:
        return bool(connection.filename)
    except apsw.ConnectionClosedError:
        return False
    except apsw.ThreadingViolationError:
        return True  # it is just writing


def bound_heap(most_bytes: int) -> None:
    """Let SQLite take no more than this in the whole process, for one query. A writer that met the limit would lose its
    run: beside one there is none.
    """
    with _heap_lock:
        if not has_writer():
            apsw.hard_heap_limit(max(most_bytes, apsw.hard_heap_limit(-1)))


def lift_heap_bound() -> None:
    with _heap_lock:
        apsw.hard_heap_limit(0)


def open_writer(path: Path) -> apsw.Connection:
    """Open a connection whose commits are on disk when they return. The caller holds the file's lock."""
    _refuse_foreign_log(path)
    with _making_a_writer():
        connection = connect(path)
        try:
            connection.execute(_WRITER).fetchall()  # a statement that gives a row stops there until the row is taken
            keep_pages(connection, _WRITER_PAGES_KB)
        except BaseException:
            connection.close()
            raise
        _writers.add(connection)
    return connection


@contextmanager
def _making_a_writer() -> Generator[None]:
    with _heap_lock:
        _in_the_making.append(None)
        apsw.hard_heap_limit(0)  # of a query that began before
    try:
        yield
    finally:
        with _heap_lock:
            _in_the_making.pop()


def is_file_of_ours(path: Path) -> bool:
    """Whether this is a run file or an engine file, of any version and with anything beside it. It asks SQLite: closing
    a plain descriptor would drop the locks that this process may have on the file.
    """
    try:
        connection = _connect_alone(path)
    except apsw.Error:
        return False
    try:
        return any(has_format(connection, each) for each in (RUN_FILE, ENGINE_FILE))
    except apsw.Error:
        return False
    finally:
        connection.close()


def _where_it_may_be(path: Path) -> str:
    """What to do where there is no file: `headrace runs` lists those in the data directory by their names alone."""
    with suppress(OSError, RuntimeError):  # a user without a home has no such directory
        listed = home() / "runs" / path.name
        if listed.exists():
            return f"One of that name is in your data directory: {listed}"
    return "Check the path, or run a job."


Check: TypeAlias = Callable[[apsw.Connection, Path], None]


def open_reader(path: Path, check: Check, *, needs_log: bool = True) -> apsw.Connection:
    """Open a connection that only reads, to a file that `check` accepts; also while another process writes.

    A transaction that a killed writer left half done is rolled back first, under the lock; where a live writer has the
    lock, that one rolls back. `needs_log=False` opens a file whose last rows are in a log that is lost or damaged.
    """
    if not path.exists():
        raise RunFileError(f"There is no run file at {path}.", path=path, fix=_where_it_may_be(path))
    give_up_s = time.monotonic() + _BUSY_WAIT_MS / 1000
    with translated_errors(path):
        while True:
            try:
                return _reader(path, check, needs_log=needs_log)
            except apsw.ReadOnlyError as error:
                if not needs_recovery(error) or time.monotonic() > give_up_s:
                    raise
            try:
                _recover(path.resolve())
            except RunFileBusy:
                time.sleep(_LOOK_AGAIN_AFTER_S)


def _reader(path: Path, check: Check, *, needs_log: bool) -> apsw.Connection:
    refuse_odd_neighbours(path.resolve() if path.is_symlink() else path)
    if needs_log:
        check_log_is_there(path, partial(_connect_alone, path))
    _refuse_foreign_log(path)
    connection = connect(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        check(connection, path)
        if needs_log:
            check_log_is_whole(connection, path)
        connection.execute("PRAGMA temp_store=FILE").fetchall()
        keep_pages(connection, READER_PAGES_KB)
    except (apsw.CorruptError, RunFileDamaged) as error:
        unreadable = read_failure(connection, path)
        connection.close()
        raise unreadable or error from None
    except BaseException:
        connection.close()
        raise
    return connection


def _recover(path: Path) -> None:
    try:
        lock = WriterLock(path)
    except RunFileBusy:
        raise
    except RunFileError as error:
        raise cannot_roll_back_here(path) from error
    try:
        roll_back(path)
    finally:
        lock.release()


def roll_back(path: Path) -> None:
    """Have SQLite undo the transaction that a killed writer left in `-journal`. The caller holds the file's lock."""
    journal = path.with_name(path.name + "-journal")
    if not journal.exists() or not path.exists():
        return
    _refuse_odd_file(path)
    refuse_odd_neighbours(path)
    _refuse_foreign_journal(path, journal)
    _refuse_foreign_log(path)
    connection = connect(path)
    try:
        # A log beside it stays: where a kill came behind "more follows", the file alone would miss it for good.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    finally:
        connection.close()


def _refuse_foreign_journal(path: Path, journal: Path) -> None:
    """Refuse a journal that ends in SQLite's magic number: it names another file, which rolling back may delete. SQLite
    writes such journals for transactions over several databases; we have none.
    """
    if _end_of(journal, path) == _JOURNAL_MAGIC:
        raise RunFileDamaged(
            f"{journal} was not written by Headrace: it names another file to be deleted.",
            path=path,
            fix="Do not use it. Without it the run file may hold half of a transaction.",
        )


def _end_of(journal: Path, path: Path) -> bytes:
    try:
        with os.fdopen(open_side_file(journal), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(_JOURNAL_MAGIC)))
            return file.read(len(_JOURNAL_MAGIC))
    except OSError as error:
        raise RunFileError(
            f"{journal} cannot be read ({error.strerror}), and {path} may hold half of a transaction without it.",
            path=path,
            fix="Check its rights and the disk, or copy both files together to a directory of yours.",
        ) from error
