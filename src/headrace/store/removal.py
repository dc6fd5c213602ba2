"""Run files as they lie on disk, with the files beside them. Covers: their size, and removing them safely.

Does not cover: renaming one out of the way (store.run_file.run_file.set_aside).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from headrace.errors import RunFileError, RunFileTooNew
from headrace.store.claim import refuse_live_writer
from headrace.store.connections import open_reader
from headrace.store.lock import WriterLock

# SQLite's own, the writer's lock, a running engine's socket, and a file that was never finished.
_BESIDE = ("-wal", "-shm", "-journal", ".lock", ".sock", ".making")


def disk_bytes(path: Path) -> int:
    """What a run file takes, with the files beside it."""
    return sum(_file_bytes(part) for part in (path, *_beside(path)))


def check_is_removable(path: Path) -> None:
    """Refuse what is not a run file, or is being written."""
    _check_is_ours(path)
    WriterLock(path.resolve()).release()


def remove_run(path: Path) -> int:
    """Delete a run file and the files beside it; says how many bytes that gives back."""
    _check_is_ours(path)
    path = path.resolve()  # the lock has the file's own name
    lock = WriterLock(path)
    try:
        freed = disk_bytes(path)
        # The file first: without it, what lies beside it means nothing, and a new run clears it away.
        path.unlink(missing_ok=True)
        for part in _beside(path):
            part.unlink(missing_ok=True)
    except OSError as error:
        raise RunFileError(f"{path} cannot be removed: {error.strerror}.", path=path, fix="Check its rights.") from None
    finally:
        lock.release()
    return freed


def _beside(path: Path) -> Iterator[Path]:
    return (path.with_name(path.name + suffix) for suffix in _BESIDE)


def _check_is_ours(path: Path) -> None:
    try:
        connection = open_reader(path, needs_log=False)
    except RunFileTooNew:
        return  # a run file all the same
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
