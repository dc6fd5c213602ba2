"""A file while this process writes it: a run file or an engine file, locked, claimed, watched, left as one plain file.

    opening: lock ──► roll back ──► make where missing
    LiveFile: WAL mode ──► claim ──► transactions, the log kept short ──► claim removed, log gathered, WAL mode left
                                         │
                                         └── moved, removed or replaced? no more work; its contents are saved

Covers: opening, the writing connection, and closing, once for both kinds of file. Does not cover: what is in the file
(run_file, engine_file), how the lock works (lock), in which thread it is written (writer_thread).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import apsw

from headrace.errors import HeadraceError, RunFileError, RunFileGone
from headrace.store.claim import Claim
from headrace.store.connections import open_writer, roll_back
from headrace.store.disk_errors import translated_errors
from headrace.store.lock import MEANWHILE, WriterLock
from headrace.store.logs.write_ahead_log import WriteAheadLog, unsynced
from headrace.store.making import copy_into, new_database, remove_unfinished
from headrace.store.private import make_directory
from headrace.store.transactions import transaction

_Identity: TypeAlias = tuple[int, int]
_TRIES_TO_LEAVE_WAL, _TRIED_AGAIN_AFTER_S = 50, 0.005
_OPEN_FILES = Path("/proc/self/fd")


@contextmanager
def opening(path: Path, *, meanwhile: str = MEANWHILE) -> Generator[WriterLock]:
    """Hold a file's lock while the block opens the file to be written; a killed process's transaction is rolled back
    first, and a file that it had not finished is removed.

    The block hands the lock to a LiveFile. Where the block raises, the lock is released.
    """
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "not a regular file"
        raise RunFileError(f"{path} is {what}.", path=path, fix="Give the path of a file.")
    try:
        make_directory(path.parent)
    except OSError as error:
        raise RunFileError(
            f"{path.parent} cannot be made: {error.strerror}.", path=path, fix="Use another path."
        ) from None
    lock = WriterLock(path, meanwhile=meanwhile)
    try:
        with translated_errors(path):
            roll_back(path)
            remove_unfinished(path)
            yield lock
    except BaseException:
        lock.release()
        raise


def make_where_missing(path: Path, write: Callable[[apsw.Connection], None]) -> None:
    """Have `write` fill a new database where there is no file, or an empty one."""
    if not path.exists() or path.stat().st_size == 0:
        with new_database(path) as empty:
            write(empty)


class LiveFile:
    """The base of both kinds of file while they are written: claim, transactions, log, watching the path, closing.

    The caller holds the lock and hands it over: `close` releases it. `upgrade` brings a file that an older version
    wrote up to date. Any thread may call its methods; one transaction runs at a time.
    """

    def __init__(self, path: Path, lock: WriterLock, upgrade: Callable[[LiveFile], None]) -> None:
        self.path = path
        self._lock = lock
        self._writing = threading.RLock()
        self.connection = open_writer(path)
        try:
            self._claim = Claim(path, self.connection)
            self._log = WriteAheadLog(self.connection)
            with unsynced(self.connection), transaction(self.connection):
                self._claim.take()
            self._log.begin(self._claim.check)
            self._file = _identity(path)
            self._log_file = _identity(self._log_path)
            self._is_cut_off = False
            self._saved_at = time.strftime("%Y%m%d-%H%M%S")
        except BaseException:
            self.connection.close()
            raise
        try:
            upgrade(self)
        except BaseException:
            self.close()
            raise

    @property
    def _log_path(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Commit all of the block or nothing of it. It is on disk when the block ends; where another process has
        claimed the file meanwhile, it is rolled back.
        """
        with self._writing:
            self._check_log_is_whole()
            with transaction(self.connection):
                yield
                self._claim.check()
            self.keep_log_short()

    @property
    def has_long_log(self) -> bool:
        """Whether `keep_log_short` has something to do."""
        return self._log.is_due

    def keep_log_short(self) -> None:
        """Bring the log into the file where that is due."""
        with self._writing:
            if self._log.is_due:
                self._check_log_is_whole()
                self._log.shorten(self._claim.check)

    def check_is_in_place(self) -> None:
        """Raise RunFileGone where the file is not at its path any more. It looks at names only: opening and closing the
        file would drop this process's POSIX locks on it.
        """
        if not _is_at(self.path, self._file) or not _is_at(self._log_path, self._log_file):
            raise self._gone()
        if self._log.is_short:
            with self._writing:  # by a thread that is just committing
                self._check_log_is_whole()
        self._lock.renew()

    def _check_log_is_whole(self) -> None:
        """Raise RunFileGone, and from then on bring nothing of the log into the file, where it was cut off."""
        if self._is_cut_off or self._log.is_cut_off():
            self._is_cut_off = True
            raise RunFileGone(
                f"{self._log_path} was cut off by another program while it was being written. What was journaled in the"
                f" last seconds is lost; {self.path} holds what came before.",
                path=self.path,
                fix=f"Keep that with: headrace copy {self.path} NEW --without-log; the new file goes on from there.",
            )

    def close(self) -> None:
        """Leave one plain file behind, unless a reader is in the way. Raises RunFileGone where the file is not at its
        path any more, with where its contents are.
        """
        with self._writing:
            self._close()

    def _close(self) -> None:
        try:
            with translated_errors(self.path):
                self._leave()
        finally:
            self.connection.close()
            self._claim.forget()
            self._lock.release()

    def _leave(self) -> None:
        try:
            self.check_is_in_place()
        except RunFileGone as gone:
            if self._is_cut_off:
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            else:
                self._save(gone)
            raise gone from None
        with suppress(HeadraceError, apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError):
            # A reader is there, or the disk is full, or another process has taken over: the file stays in WAL mode,
            # complete, and the next close gathers it.
            with unsynced(self.connection), transaction(self.connection):
                self._claim.check()
                self._claim.remove()
                self._log.remove_mark()
            seal(self.connection)

    def _gone(self) -> RunFileGone:
        what, where = self._fate()
        return RunFileGone(f"{self.path} was {what} while it was being written.", path=self.path, fix=where)

    def _fate(self) -> tuple[str, str]:
        """What happened to the file, and where its contents are once this process has closed it."""
        if _identity(self.path) == self._file:
            return "left without its log, which was removed,", "All that was journaled is in it: run the job again."
        if (now_at := self._present_path()) is not None:
            return f"moved to {now_at}", f"All that was journaled is there; go on with that path: {now_at}"
        what = "replaced by another file" if self.path.exists() else "removed"
        return what, f"All that was journaled is saved in {self._saved_path()}: go on with that file, or remove it."

    def _present_path(self) -> Path | None:
        """Where a moved file is now, as far as the system says."""
        for place in _open_places():
            if _identity(place) == self._file:
                return place
        return None

    def _saved_path(self) -> Path:
        # One name for one opening: what is said when the loss is seen must hold when the file is closed.
        return self.path.with_name(f"{self.path.stem}.saved-{self._saved_at}{self.path.suffix}")

    def _save(self, gone: RunFileGone) -> None:
        """Bring the log into the file, wherever it is; a file that has no path any more is copied to one."""
        try:
            with translated_errors(self.path):
                with transaction(self.connection):
                    self._claim.remove()
                    self._log.remove_mark()
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                if _identity(self.path) == self._file:
                    seal(self.connection)
                elif self._present_path() is None:
                    copy_into(self.connection, self._saved_path())
        except HeadraceError as error:
            fix = f"What was journaled could not be saved under another name: {error.message}"
            raise RunFileGone(gone.message, path=self.path, fix=fix) from error
        self._remove_former_log()

    def _remove_former_log(self) -> None:
        """Remove the log of a file that is gone: SQLite would replay it into the next file of that name."""
        if self._log_file is not None and _identity(self._log_path) == self._log_file:
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def seal(connection: apsw.Connection) -> None:
    """Bring the log into the file and leave WAL mode: one plain file, which can be copied as it is.

    SQLite cannot leave WAL mode while a reader has the file open, and does not wait for it. Most readers are there for
    milliseconds (`headrace status --watch`), so it is tried again: a log left behind for one of them would stay for
    good.
    """
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for _ in range(_TRIES_TO_LEAVE_WAL - 1):
        with suppress(apsw.BusyError, apsw.LockedError):
            connection.execute("PRAGMA journal_mode=DELETE").fetchall()
            return
        time.sleep(_TRIED_AGAIN_AFTER_S)
    connection.execute("PRAGMA journal_mode=DELETE").fetchall()


def _identity(path: Path) -> _Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_at(path: Path, file: _Identity | None) -> bool:
    """Whether this file is at this path; true where the system cannot say."""
    if file is None:
        return True
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return (found.st_dev, found.st_ino) == file


def _open_places() -> Iterator[Path]:
    try:
        numbers = list(_OPEN_FILES.iterdir())  # bounded by the process's limit of descriptors
    except OSError:
        return
    for number in numbers:
        with suppress(OSError):
            yield number.readlink()
