"""Run files as they lie on disk, with the files beside them: their size, removing one, renaming one out of the way.

Each is refused for another kind of file, and while a process writes the file. Does not cover: copying (whole_files).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from headrace.errors import HeadraceError, LogDamaged, RunFileBusy, RunFileError, RunFileTooNew
from headrace.store.claim import refuse_live_writer
from headrace.store.connections import open_writer
from headrace.store.kept_names import free_name
from headrace.store.live_file import seal
from headrace.store.lock import WriterLock
from headrace.store.logs.write_ahead_log import remove_mark
from headrace.store.run_file.reader import open_run_file

# SQLite's own, the writer's lock, a running engine's socket, and a file that was never finished.
_OF_SQLITE = ("-wal", "-shm", "-journal")
_BESIDE = (*_OF_SQLITE, ".lock", ".sock", ".making", *(f".making{suffix}" for suffix in _OF_SQLITE))
PARTS = ".parts"  # the directory of Parquet files that DuckDB reads
_IN_PARTS = (".parquet", ".json", ".lock", ".part")


def disk_bytes(path: Path) -> int:
    """The size on disk of a run file and the files beside it."""
    return sum(_file_bytes(part) for part in (path, *_beside(path), *_parts_of(path)))


def check_is_removable(path: Path) -> None:
    """Refuse another kind of file, and a run file that is being written."""
    _check_is_ours(path)
    WriterLock(path.resolve()).release()


def remove_run(path: Path) -> int:
    """Delete a run file and the files beside it; returns how many bytes that frees."""
    _check_is_ours(path)
    path = path.resolve()  # the lock has the file's own name
    lock = WriterLock(path)
    try:
        freed = disk_bytes(path)
        # The file first: a kill before the rest leaves what a new run of that name puts aside or clears away.
        path.unlink(missing_ok=True)
        for part in (*_beside(path), *_parts_of(path)):
            part.unlink(missing_ok=True)
        with suppress(OSError):  # there is none, or it holds what is not ours
            _parts_directory(path).rmdir()
    except OSError as error:
        raise RunFileError(f"{path} cannot be removed: {error.strerror}.", path=path, fix="Check its rights.") from None
    finally:
        lock.release()
    return freed


def set_aside(path: Path) -> Path | None:
    """Rename an earlier run file out of the way, and return its new path. The caller holds the lock."""
    if not path.exists():
        return None
    kept = free_name(path, time.localtime())
    if path.stat().st_size:
        _refuse_if_written(path)
        if _is_log_damaged(path):  # brought in, it would be gone with the rows behind its damage
            path.with_name(path.name + "-wal").rename(kept.with_name(kept.name + "-wal"))
            path.with_name(path.name + "-shm").unlink(missing_ok=True)
        else:
            _gather_into_one_file(path)
    path.rename(kept)
    return kept


def _is_log_damaged(path: Path) -> bool:
    try:
        open_run_file(path).close()
    except LogDamaged:
        return True
    except HeadraceError:
        return False
    return False


def _gather_into_one_file(path: Path) -> None:
    """Bring the rows in a log beside the file into it: one file is renamed at once, two could be torn apart."""
    connection = open_writer(path)
    try:
        with suppress(apsw.BusyError, apsw.LockedError):
            seal(connection)
            remove_mark(connection)  # of a log that is lost: the next one is not it
    finally:
        connection.close()
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise RunFileBusy(f"{path} is being read.", path=path, fix="Close its readers, then start over.")


def _beside(path: Path) -> Iterator[Path]:
    return (path.with_name(path.name + suffix) for suffix in _BESIDE)


def _parts_of(path: Path) -> list[Path]:
    """The Parquet files of a run file with what belongs to them; no more than a few for 65,536 interviews."""
    directory = _parts_directory(path)
    if directory.is_symlink() or not directory.is_dir():
        return []
    return [each for each in directory.iterdir() if each.suffix in _IN_PARTS]


def _parts_directory(path: Path) -> Path:
    return path.with_name(path.name + PARTS)


def _check_is_ours(path: Path) -> None:
    with suppress(RunFileTooNew):  # a run file all the same
        _refuse_if_written(path)


def _refuse_if_written(path: Path) -> None:
    connection = open_run_file(path, needs_log=False)
    try:
        refuse_live_writer(connection, path)
    finally:
        connection.close()


def _file_bytes(path: Path) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 0  # gone meanwhile, or never there
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
