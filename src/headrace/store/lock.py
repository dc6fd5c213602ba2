"""One writer a run file, by a lock that the system releases when its holder dies. Covers: taking it, giving it back,
and seeing who has it.

The lock is on a side file: SQLite's own locks are POSIX locks, which closing any descriptor of the file would drop.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO

from headrace.errors import RunFileBusy, RunFileError, StorageFull

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None


# Whoever looks who holds a lock has it, shared, for the time of one read.
_TRIES = 3
_TRY_AGAIN_AFTER_S = 0.005


class WriterLock:
    """Held from construction to `release`."""

    def __init__(self, run_path: Path, *, meanwhile: str = "Results.open() reads the file meanwhile") -> None:
        self._meanwhile = meanwhile
        self._path = _lock_path(run_path)
        self._file = self._take(run_path)
        try:
            os.ftruncate(self._file.fileno(), 0)
            os.write(self._file.fileno(), str(os.getpid()).encode())
        except OSError as error:
            self.release()
            raise StorageFull(run_path, error.strerror or str(error)) from None

    def release(self) -> None:
        if fcntl is not None:
            # Unlinked while still held: nobody can take a lock on a name that is about to go.
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _take(self, run_path: Path) -> IO[str]:
        while True:
            try:
                file = self._path.open("a+", encoding="ascii")
            except OSError as error:
                raise RunFileError(
                    f"{run_path} cannot be written: {error.strerror}.", path=run_path, fix="Use another path."
                ) from None
            if not _try_lock(file):
                raise self._busy(run_path, file)
            if _is_still_at(file, self._path):
                return file
            file.close()  # the holder gave it back between our open and our lock

    def _busy(self, run_path: Path, file: IO[str]) -> RunFileBusy:
        holder = _named_in(file)
        file.close()
        return RunFileBusy(
            f"{run_path} is being written by another run (process {holder}).",
            path=run_path,
            fix=f"Wait for it or stop it; {self._meanwhile}.",
        )


def writer_of(run_path: Path) -> str | None:
    """The process that writes a run file at this moment, as far as it is known; None where nobody does."""
    if fcntl is None:
        return None
    try:
        file = _lock_path(run_path).open(encoding="ascii")
    except OSError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _named_in(file)
        return None


def _lock_path(run_path: Path) -> Path:
    return run_path.with_name(run_path.name + ".lock")


def _named_in(file: IO[str]) -> str:
    file.seek(0)
    return file.read(20).strip() or "unknown"


def _try_lock(file: IO[str]) -> bool:
    if fcntl is None:
        return True
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_TRY_AGAIN_AFTER_S)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False


def _is_still_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
