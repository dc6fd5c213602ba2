"""One writer a run file, by a lock that the system releases when its holder dies. Covers: taking it, giving it back.

The lock is on a side file: SQLite's own locks are POSIX locks, which closing any descriptor of the file would drop.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from headrace.errors import RunFileBusy, RunFileError, StorageFull

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None


class WriterLock:
    """Held from construction to `release`."""

    def __init__(self, run_path: Path) -> None:
        self._path = run_path.with_name(run_path.name + ".lock")
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
        file.seek(0)
        holder = file.read(20).strip()
        file.close()
        return RunFileBusy(
            f"{run_path} is being written by another run (process {holder or 'unknown'}).",
            path=run_path,
            fix="Wait for it or stop it; Results.open() reads the file meanwhile.",
        )


def _try_lock(file: IO[str]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
