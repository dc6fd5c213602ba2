"""The log beside a file in WAL mode (`x.run-wal`): keeping it short, and noticing that it is missing.

After a kill, rows may be in the log alone. So the log is brought into the file every 5 s of writing and every 16 MB,
and the file itself says whether more of the log follows:

    commit "more follows" ──► checkpoint: the file itself now says so ──► commit "this is the end"

The commits behind that checkpoint are in the log alone, and the last of them says "this is the end". A file that says
"more follows" and has no log has lost rows; a file whose log any SQLite tool has brought in says "this is the end".
Does not cover: who may write (claim).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from headrace.display import visible
from headrace.errors import LogMissing, spelled
from headrace.store.kept_names import LOG, free_name, kept_logs
from headrace.store.transactions import transaction

_KEY = "log"
_MORE_FOLLOWS, _THE_END = 1, 0
_MOST_PAGES = 4_000
_MOST_S = 5.0
_AGAIN_AFTER_S = 0.2  # where a reader's transaction kept part of the log from being brought in
_AGAIN_AFTER_PAGES = 1_000  # where a reader keeps the log from beginning anew
_HEADER_BYTES = 32
_MOST_NAMED = 3
_NO_ROOM = (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError)


class WriteAheadLog:
    """The log of one writing connection. One thread at a time, but for `is_due`."""

    def __init__(self, connection: apsw.Connection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._clock = clock
        self._pages = 0
        self._try_at_pages = _MOST_PAGES
        self._has_new = False
        self._due_s = clock() + _MOST_S
        connection.execute("PRAGMA wal_autocheckpoint=0").fetchall()
        connection.set_wal_hook(self._note_commit)

    @property
    def is_due(self) -> bool:
        """Whether the log should be brought into the file now."""
        if self._pages >= self._try_at_pages:
            return True
        return self._has_new and self._clock() >= self._due_s

    def begin(self, check: Callable[[], None], wait: Callable[[float], None] = time.sleep) -> None:
        """Mark the file before its first rows, so that the loss of the log is noticed. A reader whose transaction is in
        the way is waited for, a second at most.
        """
        for _ in range(100):
            self.shorten(check)
            if not self._has_new:
                return
            wait(0.01)

    def shorten(self, check: Callable[[], None]) -> None:
        """Bring the log into the file. `check` is called inside each transaction and may raise."""
        with unsynced(self._connection):
            self._shorten(check)

    def _shorten(self, check: Callable[[], None]) -> None:
        is_whole = True
        with suppress(*_NO_ROOM):  # then the next commit has the same trouble, and says so
            self._mark(_MORE_FOLLOWS, check)
            pages, brought_in = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            is_whole = pages == brought_in
            self._mark(_THE_END, check)
        if self._pages >= _MOST_PAGES:
            self._try_at_pages = self._pages + _AGAIN_AFTER_PAGES
        self._has_new = not is_whole
        self._due_s = self._clock() + (_MOST_S if is_whole else _AGAIN_AFTER_S)

    def remove_mark(self) -> None:
        """Delete the mark, inside the caller's transaction: the file is about to leave WAL mode."""
        self._connection.execute(f"DELETE FROM meta WHERE key = '{_KEY}'")

    def _mark(self, mark: int, check: Callable[[], None]) -> None:
        with transaction(self._connection):
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (_KEY, mark))
            check()

    def _note_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        if pages < self._pages:  # it begins anew
            self._try_at_pages = _MOST_PAGES
        self._pages, self._has_new = pages, True
        return apsw.SQLITE_OK


@contextmanager
def unsynced(connection: apsw.Connection) -> Generator[None]:
    """Let transactions in the block return before they are on disk: a checkpoint follows and syncs the log, or nothing
    is lost with them.
    """
    connection.execute("PRAGMA synchronous=NORMAL").fetchall()
    try:
        yield
    finally:
        connection.execute("PRAGMA synchronous=FULL").fetchall()


def check_log_is_there(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose last rows are in a log that is not beside it any more."""
    for _ in range(2):  # a writer may have ended, and gathered its log, between the two looks
        if not _needs_log(connection) or _has_log(path):
            return
    log = path.with_name(path.name + LOG)
    raise LogMissing(
        f"{log} is missing: rows that were journaled are in it, and not yet in {path}. After a kill, and of a run that"
        " goes on, the two files belong together.",
        path=path,
        fix=spelled(
            f"Put it back beside the file.{_kept_in_words(path, log)} If it is lost, keep what there is with: headrace"
            f" copy {path} NEW --without-log; the new file goes on from there. {{fresh}} starts over.",
            fresh=True,
        ),
    )


def put_log_aside(path: Path) -> None:
    """Keep the log of a file that is not at its path any more under another name, and say so. The file may only have
    been moved, and rows of it may be in this log alone.
    """
    log = path.with_name(path.name + LOG)
    if not _has_rows(log):
        return
    kept = free_name(log, time.localtime())
    log.rename(kept)
    logging.getLogger("headrace").warning(
        "%s is the log of an earlier file, which is not at %s any more. The log is kept as %s: if that file was only"
        " moved or renamed, put the log beside it under the file's name with %s behind; if it was removed, remove the"
        " log too.",
        visible(str(log)),
        visible(str(path)),
        visible(str(kept)),
        LOG,
    )


def _kept_in_words(path: Path, log: Path) -> str:
    kept = kept_logs(path.resolve())[:_MOST_NAMED]
    if not kept:
        return ""
    names = " or ".join(each.name for each in kept)
    return f" It may be {names}, kept when a new file was made in the place of one that was moved: name it {log.name}."


def _needs_log(connection: apsw.Connection) -> bool:
    mark = connection.execute(f"SELECT value FROM meta WHERE key = '{_KEY}'").get
    return mark == _MORE_FOLLOWS and connection.pragma("journal_mode") == "wal"


def _has_log(path: Path) -> bool:
    path = path.resolve()
    return _has_rows(path.with_name(path.name + LOG))


def _has_rows(log: Path) -> bool:
    try:
        return log.stat().st_size > _HEADER_BYTES
    except OSError:
        return False
