"""SQLite's errors about the disk and the file, translated into our error tree.

Does not cover: errors in a user's own SQL (results.tables.sql_table).
"""

from __future__ import annotations

import errno
import os
import shlex
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

import apsw

from headrace.errors import HeadraceError, RunFileBusy, RunFileDamaged, RunFileError, StorageFull
from headrace.store.contents import damaged, short_message

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_WRITE_ERRORS = frozenset(
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMSIZE,
    }
)
_LOCK_ERRORS = frozenset(
    {
        apsw.SQLITE_IOERR_LOCK,
        apsw.SQLITE_IOERR_RDLOCK,
        apsw.SQLITE_IOERR_UNLOCK,
        apsw.SQLITE_IOERR_CHECKRESERVEDLOCK,
        apsw.SQLITE_IOERR_SHMLOCK,
        apsw.SQLITE_IOERR_SHMMAP,
    }
)
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_UNREADABLE = frozenset({errno.EIO, errno.ENXIO, errno.ERANGE})  # SQLite takes these for damage
_open: WeakSet[apsw.Connection] = WeakSet()
_BESIDE = ("", "-wal", "-journal")


@contextmanager
def translated_errors(path: Path, *, is_read_only: bool = False) -> Generator[None]:
    """Translate SQLite's errors about the disk or the file that the block raises.

    Who reads a file alone, `is_read_only`, writes temporary files alone: a full disk is then that of their directory.
    """
    grows = _temporary_directory() if is_read_only else path
    try:
        yield
    except apsw.FullError:
        raise StorageFull(grows, "the disk is full", temporary=is_read_only) from None
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) in _WRITE_ERRORS:
            raise StorageFull(grows, f"writing failed ({error})", temporary=is_read_only) from error
        if getattr(error, "extendedresult", None) in _LOCK_ERRORS:
            raise _without_locks(path) from error
        raise RunFileError(f"{path} cannot be read: {error}.", path=path, fix="Check the disk.") from error
    except (apsw.BusyError, apsw.LockedError):
        if not _can_lock_in(path.parent):  # SQLite takes that for a lock that another process has
            raise _without_locks(path) from None
        raise RunFileBusy(
            f"{path} is locked by another process.", path=path, fix="Try again when that is done."
        ) from None
    except (apsw.CorruptError, apsw.NotADBError) as error:
        for connection in list(_open):
            if unreadable := read_failure(connection, path):
                raise unreadable from error
        raise RunFileDamaged(
            f"{path} is damaged: {error}.",
            path=path,
            fix="Restore a copy, or salvage it with sqlite3's .recover.",
        ) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        if needs_recovery(error) or _is_in_a_read_only_place(path):
            raise cannot_roll_back_here(path) from error
        raise RunFileError(f"{path} cannot be opened: {error}.", path=path, fix="Check its rights.") from error
    except apsw.InterruptError:
        raise  # of a query that was ended
    except apsw.NoMemError as error:
        raise HeadraceError(
            f"SQLite has no memory left to read {path}: a query of this program's takes what there is.",
            fix="Try again when that query has ended.",
        ) from error
    except (apsw.Error, UnicodeDecodeError) as error:
        # Our statements are right for our tables, which were checked: it is what the tables hold.
        raise damaged(path, f"SQLite cannot make sense of what it holds ({short_message(error)})") from error


def _temporary_directory() -> Path:
    """Where SQLite puts its temporary files."""
    return Path(os.environ.get("SQLITE_TMPDIR") or tempfile.gettempdir())


def _without_locks(path: Path) -> RunFileError:
    return RunFileError(
        f"The file system of {path.parent} cannot lock files, and SQLite needs locks for {path}.",
        path=path,
        fix="Use a path on a local disk, and copy the file when the run has ended.",
    )


def _can_lock_in(directory: Path) -> bool:
    """Whether files in this directory can be locked as SQLite locks them; true where that cannot be tried."""
    if fcntl is None:
        return True
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _NO_LOCKS
    return True


def track(connection: apsw.Connection) -> None:
    """Have `translated_errors` ask this connection whether its file is damaged or the disk cannot be read."""
    _open.add(connection)


def read_failure(connection: apsw.Connection, path: Path) -> RunFileError | None:
    """The error to raise where SQLite says "malformed" because the disk reported an error; None where it did not."""
    import ctypes  # only damage should cost its import

    last = ctypes.c_int(0)
    try:
        if not connection.filename or not path.exists() or not path.samefile(connection.filename):
            return None
        connection.file_control("main", apsw.SQLITE_FCNTL_LAST_ERRNO, ctypes.addressof(last))
    except (apsw.Error, OSError):
        return None  # closed, in use by another thread, or gone
    if last.value not in _UNREADABLE:
        return None
    return RunFileError(
        f"{path} cannot be read: the disk reports an error ({os.strerror(last.value)}).",
        path=path,
        fix="Check the disk; copy the file to another one while most of it can be read.",
    )


def needs_recovery(error: apsw.Error) -> bool:
    """Whether a read failed because a killed writer's transaction has to be rolled back, which only a writer can do."""
    return getattr(error, "extendedresult", None) in (apsw.SQLITE_READONLY_ROLLBACK, apsw.SQLITE_READONLY_RECOVERY)


def cannot_roll_back_here(path: Path) -> RunFileError:
    """The error for a file that a killed process left half written where nothing can be written."""
    files = shlex.join(str(part) for part in map(path.with_name, _names(path)) if part.exists())
    return RunFileError(
        f"{path} was left by a process that was killed, and cannot be put in order here: {path.parent} or the file"
        " cannot be written.",
        path=path,
        fix=f"Copy its files together to a directory of yours and open the copy there: cp {files} DIRECTORY",
    )


def _names(path: Path) -> list[str]:
    return [path.name + suffix for suffix in _BESIDE]


def _is_in_a_read_only_place(path: Path) -> bool:
    return path.exists() and not os.access(path.parent, os.W_OK)
