"""The log beside a file in WAL mode (`x.run-wal`): keeping it short, and noticing that it is missing, damaged or of
another file.

After a kill, rows may be in the log alone. So the log is brought into the file every 5 s of writing and every 16 MB,
and the file itself says whether more of the log follows:

    commit "more follows" ──► checkpoint: the file itself now says so ──► commit "this is the end"

The commits behind that checkpoint are in the log alone, and the last of them says "this is the end". A file that says
"more follows" and has no log has lost rows; a file whose log any SQLite tool has brought in says "this is the end".

SQLite replays any log that has the right name. So "more follows" comes with the log's salts, two numbers in its header:
the first is random in a new log and one higher each time the log begins anew, which it does at most once between two
checkpoints. Not noticed: the log of a twin, where file and log were copied by hand together and both have gone on.
A file says no salts once it is closed in order, or where an earlier version wrote it. When it was made must then read
the same with the log and without it: not noticed is a log of a file that has its table `meta` in other pages.

SQLite reads a log up to the first frame that is not as it was written, as after a power cut, and ignores the rest.
Damage is told from a power cut by the commits behind that frame: each commit of rows is on disk before the next one is
written, so a power cut leaves a few at most. Not noticed: damage that reaches into the last few commits, a log that was
cut off after a kill, and any damage where this user may not write the log. A log that is cut off while it is written is
noticed before the next transaction; in the moment of a commit it is not.
Does not cover: who may write (claim).
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import apsw

from headrace.display import visible
from headrace.errors import LogDamaged, LogMissing, spelled
from headrace.plain_files.side_files import open_side_file
from headrace.store.kept_names import LOG, free_name, kept_logs
from headrace.store.logs.log_frames import FRAME_HEADER_BYTES, HEADER_BYTES, SALTS, LogFrames, is_header_whole
from headrace.store.transactions import transaction

_Opening: TypeAlias = Callable[[], apsw.Connection]
_KEY, _SALTS_KEY = "log", "log salts"
_MORE_FOLLOWS, _THE_END = 1, 0
# Compared before anything is read of it: the file may not be ours, and its table may compute what it says.
META_TABLE = "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID"
_SAID = f"""
SELECT key, value FROM meta WHERE key IN ('{_KEY}', '{_SALTS_KEY}', 'created_at', 'token') AND octet_length(value) < 100
"""
_MOST_PAGES = 4_000
_MOST_S = 5.0
_AGAIN_AFTER_S = 0.2  # where a reader's transaction kept part of the log from being brought in
_AGAIN_AFTER_PAGES = 1_000  # where a reader keeps the log from beginning anew
_WAL_VERSIONS_AT, _WAL_VERSIONS = 18, b"\x02\x02"  # in a database's header
_LOOKS, _LOOK_AGAIN_AFTER_S = 3, 0.002  # a live writer may bring in its log between two of them
_MOST_NAMED, _MOST_COMPARED = 3, 1_000
_NO_ROOM = (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError)


class WriteAheadLog:
    """The log of one writing connection. One thread at a time, but for `is_due`."""

    def __init__(self, connection: apsw.Connection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._path = Path(connection.filename_wal)
        self._clock = clock
        self._pages = 0
        self._file: tuple[int, int] | None = None  # device and inode, once there is a commit in it
        self._frame_bytes = FRAME_HEADER_BYTES + int(connection.pragma("page_size"))
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

    @property
    def is_short(self) -> bool:
        """Whether the log is shorter than it was at the last commit. May be asked in any thread."""
        return self._is_shorter_than(self._pages)

    def is_cut_off(self) -> bool:
        """Whether someone has made the log shorter than what is committed in it. The next commit would leave a hole in
        it, and a checkpoint would bring that into the file as pages of zeros.
        """
        if not self.is_short:
            return False
        try:
            # Another connection may have brought all of it in, and emptied it by SQLite's own rules.
            return self._is_shorter_than(_pages_in(self._connection))
        except (apsw.IOError, apsw.CorruptError, apsw.NotADBError):
            return True  # SQLite read behind its end
        except (apsw.BusyError, apsw.LockedError, apsw.ThreadingViolationError):
            return False  # not known: it is asked again

    def _is_shorter_than(self, pages: int) -> bool:
        """False too where the log is not at its path any more: that is for the caller to see."""
        try:
            found = self._path.stat()
        except OSError:
            return False
        is_this = self._file in (None, (found.st_dev, found.st_ino))
        return is_this and pages > 0 and found.st_size < HEADER_BYTES + pages * self._frame_bytes

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
            self._mark_more_follows(check)
            pages, brought_in = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            is_whole = pages == brought_in
            if not is_whole:  # marks that are not synced would add up, and look like damage after a power cut
                self._connection.execute("PRAGMA synchronous=FULL").fetchall()
            self._mark(_THE_END, None, check)
        if self._pages >= _MOST_PAGES:
            self._try_at_pages = self._pages + _AGAIN_AFTER_PAGES
        self._has_new = not is_whole
        self._due_s = self._clock() + (_MOST_S if is_whole else _AGAIN_AFTER_S)

    def remove_mark(self) -> None:
        """Delete the mark, inside the caller's transaction: the file is about to leave WAL mode."""
        remove_mark(self._connection)

    def _mark_more_follows(self, check: Callable[[], None]) -> None:
        for _ in range(2):  # where all of the log is in the file, this commit begins it anew, with other salts
            salts = _salts_of(self._path)
            self._mark(_MORE_FOLLOWS, salts, check)
            if _salts_of(self._path) == salts:
                return

    def _mark(self, mark: int, salts: bytes | None, check: Callable[[], None]) -> None:
        with transaction(self._connection):
            remove_mark(self._connection)
            self._connection.execute("INSERT INTO meta VALUES(?, ?)", (_KEY, mark))
            if salts is not None:
                self._connection.execute("INSERT INTO meta VALUES(?, ?)", (_SALTS_KEY, salts))
            check()

    def _note_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        if pages < self._pages:  # it begins anew
            self._try_at_pages = _MOST_PAGES
        if self._file is None:
            with suppress(OSError):
                found = self._path.stat()
                self._file = (found.st_dev, found.st_ino)
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


def remove_mark(connection: apsw.Connection) -> None:
    """Delete what a file says of its log, inside the caller's transaction."""
    connection.execute(f"DELETE FROM meta WHERE key IN ('{_KEY}', '{_SALTS_KEY}')")


def check_log_is_its_own(path: Path, alone: _Opening, with_log: _Opening) -> None:
    """Refuse a log beside the file that is another file's, before anything is read through it or brought in.

    `alone` opens the file as it lies on disk, without its log, and `with_log` opens it as SQLite sees it; both only to
    read, since closing a connection that may write brings the log in. What cannot be read is not compared: the caller's
    own opening says why.
    """
    log = _log_of(path)
    for _ in range(_LOOKS):
        if not _has_rows(log) or _is_its_own(log, alone, with_log):
            return
    raise LogMissing(
        f"{log} is another file's log, or one of another time, and would damage {path}, which is unharmed so far.",
        path=path,
        fix=f"Move {log.name} away, beside its own file if you know it, then open {path.name} again: what it needs"
        " instead is said there.",
    )


def _is_its_own(log: Path, alone: _Opening, with_log: _Opening) -> bool:
    salts = _salts_of(log)  # before the file, which says later salts once a writer has brought the log in
    said = _said_by(alone)
    if said.salts is not None:
        return salts is None or _may_follow(salts, said.salts)
    return said.made is None or _said_by(with_log).made in (None, said.made)


class _LogMark(NamedTuple):
    """What a file says of itself and its log: the salts only where more follows in the log."""

    made: object = None
    salts: bytes | None = None
    more_follows: bool = False


def _said_by(opening: _Opening) -> _LogMark:
    try:
        with closing(opening()) as connection:
            return _said_in(connection)
    except (apsw.Error, UnicodeDecodeError):  # not ours, damaged, or half brought in by a killed writer
        return _LogMark()


def _said_in(connection: apsw.Connection) -> _LogMark:
    table = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'meta' AND octet_length(sql) < 200").get
    if table != META_TABLE:
        return _LogMark()
    found = {str(key): value for key, value in connection.execute(_SAID).fetchall()}
    more_follows = found.get(_KEY) == _MORE_FOLLOWS and _is_in_wal_mode(connection)
    salts = found.get(_SALTS_KEY) if more_follows else None
    made = found.get("created_at", found.get("token"))
    return _LogMark(made, salts if isinstance(salts, bytes) else None, more_follows)


def _is_in_wal_mode(connection: apsw.Connection) -> bool:
    """Whether the file itself is, by its header: one that has left WAL mode is whole, whatever it says of a log. A
    connection that reads the file alone takes every file for one in another mode, and reading the header by a
    descriptor of our own would drop the locks that this process has on the file.
    """
    return connection.read("main", 0, _WAL_VERSIONS_AT, 2)[1] == _WAL_VERSIONS


def _salts_of(log: Path) -> bytes | None:
    try:
        with os.fdopen(open_side_file(log), "rb") as file:
            return file.read(HEADER_BYTES)[SALTS]
    except OSError:
        return None


def _may_follow(salts: bytes, said: bytes) -> bool:
    """Whether a log with these salts is the one that a file speaks of, or has begun anew since."""
    return salts == said or int.from_bytes(salts[:4]) == (int.from_bytes(said[:4]) + 1) % 2**32


def check_log_is_there(path: Path, alone: _Opening) -> None:
    """Refuse a file whose last rows are in a log that is not beside it any more. `alone` opens the file as it lies on
    disk: SQLite would make an empty log under the name of the one that is missing.
    """
    log, said = _log_of(path), _LogMark()
    for _ in range(_LOOKS):  # a writer may have ended, and gathered its log, between two of them
        if _has_rows(log) or not (said := _said_by(alone)).more_follows:
            return
    kept = _kept_in_words(path, log, said.salts)
    raise LogMissing(
        f"{log} is missing: rows that were journaled are in it, and not yet in {path}. After a kill, and of a run that"
        " goes on, the two files belong together.",
        path=path,
        fix=spelled(
            f"Put it back beside the file.{kept} If it is lost, keep what there is with: headrace copy {path} NEW"
            " --without-log; the new file goes on from there. {fresh} starts over.",
            fresh=True,
        ),
    )


def check_log_is_whole(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose log has commits that SQLite does not reach, since something before them has changed.

    `connection` reads the file, which must be one of ours. What cannot be asked or read is not compared.
    """
    log = _log_of(path)
    if not _has_rows(log) or (pages := _pages_read_in(connection)) < 0:
        return
    try:
        with os.fdopen(open_side_file(log), "rb", buffering=0) as file:
            header = file.read(HEADER_BYTES)
            if len(header) < HEADER_BYTES:
                return  # another program has just brought it in, and emptied it
            if is_header_whole(header):
                frames = LogFrames(file, header)
                is_damaged = frames.has_commits_behind(pages) and not frames.goes_on_behind(pages)
            else:
                is_damaged = pages == 0 and _said_in(connection).more_follows
            file.seek(0)
            is_same = file.read(HEADER_BYTES) == header  # else a live writer has begun the log anew
    except OSError:
        return
    if is_damaged and is_same and _pages_read_in(connection) == pages:
        raise LogDamaged(
            f"{log} is damaged: rows that were journaled are in it and cannot be read. {path} itself is unharmed.",
            path=path,
            fix=f"Put an undamaged copy of {log.name} in its place. If there is none, keep what can be read with:"
            f" headrace copy {path} NEW --without-log; the new file goes on from there.",
        )


def _pages_read_in(connection: apsw.Connection) -> int:
    """How many pages SQLite reads in the log; -1 where it cannot say: of a log that this user may not write, or while a
    writer is at it, and where the file is not in WAL mode.
    """
    for _ in range(_LOOKS):
        try:
            return _pages_in(connection)
        except apsw.BusyError:
            time.sleep(_LOOK_AGAIN_AFTER_S)
        except (apsw.ReadOnlyError, apsw.LockedError):
            return -1
    return -1


def _pages_in(connection: apsw.Connection) -> int:
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # as the log is now
    return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]


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


def _kept_in_words(path: Path, log: Path, salts: bytes | None) -> str:
    found = kept_logs(path.resolve())[:_MOST_COMPARED]
    if salts is not None:
        found = [each for each in found if (held := _salts_of(each)) is not None and _may_follow(held, salts)]
    if not found:
        return ""
    names = " or ".join(each.name for each in found[:_MOST_NAMED])
    when = "kept when a new file was made in the place of one that was moved"
    if salts is not None:
        return f" It is {names}, {when}: name it {log.name}."
    return (
        f" It may be {names}, {when}. Copy the file and the log before you name the log {log.name}: another file's log"
        " would damage the file."
    )


def _log_of(path: Path) -> Path:
    path = path.resolve() if path.is_symlink() else path  # SQLite looks beside what a link leads to
    return path.with_name(path.name + LOG)


def _has_rows(log: Path) -> bool:
    try:
        found = log.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > HEADER_BYTES
