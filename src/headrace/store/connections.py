"""Opening a run file with SQLite. Covers: the settings each connection needs, and telling other files apart.

Does not cover: who may write (store.lock). A connection never crosses a fork.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

import apsw

from headrace.errors import NotARunFile, RunFileBusy, RunFileDamaged, RunFileError, RunFileTooNew, StorageFull
from headrace.store.agent_schema import ENGINE_APPLICATION_ID
from headrace.store.hardening import harden
from headrace.store.schema import APPLICATION_ID, VERSION, check_run_file_schema

_BUSY_WAIT_MS = 10_000
_WRITER_PAGES_KB = 4_000
READER_PAGES_KB = 2_000
_WRITE_ERRORS = frozenset(
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMSIZE,
    }
)
_WRITER = """
PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=64000000;
"""

_with_pages: WeakSet[apsw.Connection] = WeakSet()  # those that live as long as a run


def keep_pages(connection: apsw.Connection, kilobytes: int) -> None:
    """Let it cache so much of its file, until memory is short."""
    connection.execute(f"PRAGMA cache_size={-kilobytes}; PRAGMA mmap_size=0;").fetchall()
    _with_pages.add(connection)


def release_pages() -> None:
    """From any thread: the call holds Python's lock, so that nobody else can be about to use the connection."""
    for connection in list(_with_pages):
        # One in use gives its pages back another time.
        with suppress(apsw.ThreadingViolationError, apsw.ConnectionClosedError):
            connection.release_memory()


def open_writer(path: Path) -> apsw.Connection:
    """A connection that journals: every commit is on disk when it returns."""
    connection = apsw.Connection(str(path))
    harden(connection)
    connection.set_busy_timeout(_BUSY_WAIT_MS)
    connection.execute(_WRITER).fetchall()  # a statement that gives a row stops there until the row is taken
    keep_pages(connection, _WRITER_PAGES_KB)
    return connection


def open_reader(path: Path) -> apsw.Connection:
    """A connection that only reads; also while another process writes."""
    if not path.exists():
        raise RunFileError(f"There is no run file at {path}.", path=path, fix="Check the path, or run a job.")
    if path.is_dir():
        raise RunFileError(f"{path} is a directory.", path=path, fix="Give the path of a file.")
    with translated_errors(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            harden(connection)
            connection.set_busy_timeout(_BUSY_WAIT_MS)
            check_is_run_file(connection, path)
            connection.execute("PRAGMA temp_store=FILE").fetchall()
            keep_pages(connection, READER_PAGES_KB)
        except BaseException:
            connection.close()
            raise
        return connection


def check_is_run_file(connection: apsw.Connection, path: Path) -> None:
    """Refuse what is not a run file of a version we know.

    It asks SQLite: reading the header ourselves would, on closing the file, drop the POSIX locks that other
    connections of this process hold on it, and another process could then destroy what they are writing.
    """
    try:
        application, version = (
            connection.execute("PRAGMA application_id").get,
            connection.execute("PRAGMA user_version").get,
        )
    except apsw.NotADBError:
        raise NotARunFile(
            f"{path} is not a run file.", path=path, fix="Use another path; it is left as it is."
        ) from None
    if application == ENGINE_APPLICATION_ID:
        raise NotARunFile(
            f"{path} is an engine's file, which holds agent runs and no survey.",
            path=path,
            fix="Open it with: async with Engine(path) as engine. A survey in an engine has a run file of its own.",
        )
    if application != APPLICATION_ID:
        what = "empty" if not path.stat().st_size else "a database of another program"
        raise NotARunFile(f"{path} is {what}, not a run file.", path=path, fix="Use another path.")
    if version > VERSION:
        raise RunFileTooNew(
            f"{path} was written by a newer Headrace (file version {version}, known here: {VERSION}).",
            path=path,
            fix="Upgrade with: pip install -U headrace",
        )
    check_run_file_schema(connection, path)


@contextmanager
def translated_errors(path: Path) -> Generator[None]:
    """SQLite's errors about the disk and the file, in the words of our error tree."""
    try:
        yield
    except apsw.FullError:
        raise StorageFull(path, "the disk is full") from None
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) in _WRITE_ERRORS:
            raise StorageFull(path, f"writing failed ({error})") from error
        raise RunFileError(f"{path} cannot be read: {error}.", path=path, fix="Check the disk.") from error
    except (apsw.BusyError, apsw.LockedError):
        raise RunFileBusy(
            f"{path} is locked by another process.", path=path, fix="Try again when that is done."
        ) from None
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise RunFileDamaged(
            f"{path} is damaged: {error}.",
            path=path,
            fix="Restore a copy, or salvage it with sqlite3's .recover.",
        ) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise RunFileError(f"{path} cannot be opened: {error}.", path=path, fix="Check its rights.") from error
