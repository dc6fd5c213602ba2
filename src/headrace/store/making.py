"""Making a database whole: it is written under another name and gets its own when it is finished, so that a process
killed meanwhile leaves nothing half made.

Does not cover: what is written into it (run_file.stored_job.creation, engine_file.engine_schema).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from headrace.errors import RunFileError, StorageFull
from headrace.plain_files.side_files import is_regular
from headrace.store.connections import connect, refuse_odd_neighbours
from headrace.store.hardening import vacuuming
from headrace.store.logs.write_ahead_log import put_log_aside
from headrace.store.private import make_file, sync

OF_A_WRITER = "('writer', 'log', 'log salts')"  # rows of `meta` that are about the process that writes, and its log
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
# Of a database that was here before: SQLite would replay them into the new one.
_LEFT_BESIDE = ("-journal", "-wal", "-shm")


@contextmanager
def new_database(path: Path, begin: Callable[[Path], None] | None = None) -> Generator[apsw.Connection]:
    """A connection to an empty database under another name; it becomes `path` when the block ends without an error.

    `begin` fills the empty file before it is opened.
    """
    making = _making(path)
    refuse_odd_neighbours(path)  # before the work, and again before they are put aside
    remove_unfinished(path)
    with _in_words(path):
        make_file(making)
    try:
        if begin is not None:
            begin(making)
        connection = connect(making)
    except BaseException:
        making.unlink(missing_ok=True)
        raise
    try:
        # No journal on disk and no syncs: until it has its name there is nothing to lose. None at all is not to be had
        # on a hardened connection.
        connection.execute("PRAGMA journal_mode=MEMORY").fetchall()
        connection.execute("PRAGMA synchronous=OFF; PRAGMA cache_size=-4000;").fetchall()
        yield connection
        connection.close()
        with _in_words(path):
            sync(making)
            _clear_beside(path)
            making.replace(path)
            sync(path.parent)
    finally:
        connection.close()
        making.unlink(missing_ok=True)


def _clear_beside(path: Path) -> None:
    refuse_odd_neighbours(path)
    if not path.exists() or path.stat().st_size == 0:  # what was here is elsewhere now, or removed: nobody can tell
        put_log_aside(path)
    for suffix in _LEFT_BESIDE:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def remove_unfinished(path: Path) -> None:
    """Remove what a process that was killed while it made this file has left, which may be as large as the file. The
    caller holds the file's lock.
    """
    making = _making(path)
    beside = [making.with_name(making.name + suffix) for suffix in _LEFT_BESIDE]
    with _in_words(path):
        for unfinished in (making, *filter(is_regular, beside)):  # anything else is refused when the file is made
            unfinished.unlink(missing_ok=True)


def _making(path: Path) -> Path:
    return path.with_name(path.name + ".making")


def copy_into(source: apsw.Connection, path: Path) -> None:
    """Make a new file of everything that this connection sees at one moment, although others may write meanwhile."""
    with new_database(path) as copy:
        with copy.backup("main", source, "main") as backup:
            backup.step()
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()  # it has the source's mode
        copy.execute(f"DELETE FROM meta WHERE key IN {OF_A_WRITER}")


def vacuum_into(source: apsw.Connection, path: Path) -> None:
    """Write everything that a reader sees at one moment into an empty file, without the room that it does not use."""
    with vacuuming(source):
        source.execute("VACUUM INTO ?", (str(path),))


@contextmanager
def _in_words(path: Path) -> Generator[None]:
    """Translate the system's errors about making files."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageFull(path, error.strerror or str(error)) from error
        raise RunFileError(
            f"{path} cannot be written: {error.strerror}.", path=path, fix="Use another path, or check its rights."
        ) from error
