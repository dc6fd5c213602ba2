"""The response cache's file: a SQLite database that several processes share.

Covers: opening it, beginning it anew where it is damaged, writing a batch, keeping its size. Rows are appended and an
index finds them by key: for 200,000 rows of 700 bytes, in sorted batches, that is 7 to 11 us a row, where rows kept in
the order of their keys cost 50 to 70. The lowest numbers are the oldest rows, so the oldest are found without looking
at the others. Does not cover: what is asked for and when a batch is written (models.response_cache).
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from itertools import chain
from pathlib import Path

import apsw

from headrace.errors import HeadraceError, RunFileError
from headrace.limits import CacheLimits
from headrace.store.connections import connect, keep_pages
from headrace.store.lock import WriterLock
from headrace.store.private import make_directory, make_file
from headrace.store.transactions import transaction

APPLICATION_ID = 0x48445244  # a run file's and one more
VERSION = 1  # of the table, and of what a reply is encoded as

# A hit comes too late when it is waited for; the thread that writes has time.
_READER_WAIT_MS = 20
_WRITER_WAIT_MS = 2_000
_SETTINGS = """
PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=64000000;
"""
_READER_PAGES_KB, _WRITER_PAGES_KB = 2_000, 8_000  # an index that does not fit doubles what a batch costs
_TABLES = f"""
DROP TABLE IF EXISTS replies;
CREATE TABLE replies(number INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, rest BLOB NOT NULL,
                     at REAL NOT NULL, reply BLOB NOT NULL);
PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={VERSION};
"""
_FIND = "SELECT reply FROM replies WHERE key = ? AND rest = ? AND at < ? AND typeof(reply) = 'blob'"
_INSERT = "INSERT OR REPLACE INTO replies(key, rest, at, reply) VALUES "
_ROWS_AT_ONCE = 16  # SQLite's library gives up Python's lock for every statement; getting it back costs the most
_EVICT_AT_ONCE = 500
_MOST_EVICTIONS = 20  # a batch, so that no batch takes long; the next goes on

_KEY_BYTES = 8
CacheRow = tuple[int, bytes, float, bytes]
DAMAGE = (apsw.CorruptError, apsw.NotADBError)


class UnusableCache(HeadraceError):
    """The cache at this path cannot be used. A run goes on without it."""


class CacheFile:
    """One connection for the thread that asks and one for the thread that writes."""

    def __init__(self, path: Path, limits: CacheLimits) -> None:
        self._path = path
        self._limits = limits
        self._reader = _connect(path, _READER_WAIT_MS, _READER_PAGES_KB)
        try:
            self._writer = _connect(path, _WRITER_WAIT_MS, _WRITER_PAGES_KB)
            _prepare(self._writer)
        except BaseException:
            self.close()
            raise

    def find(self, key: bytes, older_than: float) -> bytes | None:
        return self._reader.execute(_FIND, (*split_key(key), older_than)).get

    def write(self, rows: list[CacheRow]) -> bool:
        """Writes a batch in one transaction, without the oldest rows of too large a file; False on a full disk."""
        if shutil.disk_usage(self._path.parent).free < self._limits.spare_disk_bytes:
            return False
        rows.sort()  # neighbours in the index are then written together
        with transaction(self._writer):
            for first in range(0, len(rows), _ROWS_AT_ONCE):
                part = rows[first : first + _ROWS_AT_ONCE]
                self._writer.execute(
                    _INSERT + ", ".join(["(?, ?, ?, ?)"] * len(part)), tuple(chain.from_iterable(part))
                )
        self._evict()
        return True

    @property
    def used_bytes(self) -> int:
        pages = self._writer.pragma("page_count") - self._writer.pragma("freelist_count")
        return pages * self._writer.pragma("page_size")

    def close(self) -> None:
        for name in ("_reader", "_writer"):
            connection: apsw.Connection | None = getattr(self, name, None)
            if connection is not None:
                with suppress(apsw.Error):  # the last one to close tidies up, on a full disk in vain
                    connection.close()

    def _evict(self) -> None:
        """Removes the oldest rows. SQLite uses their pages again: the file neither shrinks nor grows."""
        for _ in range(_MOST_EVICTIONS):
            if self.used_bytes <= self._limits.most_bytes:
                return
            self._writer.execute(
                "DELETE FROM replies WHERE number <= (SELECT max(number) FROM"
                " (SELECT number FROM replies ORDER BY number LIMIT ?))",
                (_EVICT_AT_ONCE,),
            )


def split_key(key: bytes) -> tuple[int, bytes]:
    """An integer for the index, which is then half as large, and the rest to be sure. In the rare case that two keys
    share the integer, the later one's reply replaces the earlier one's."""
    return int.from_bytes(key[:_KEY_BYTES], signed=True), key[_KEY_BYTES:]


def open_cache_file(path: Path, limits: CacheLimits) -> CacheFile:
    """Opens the file; makes it where there is none, and anew where it is damaged. Raises UnusableCache."""
    try:
        make_directory(path.parent)
        try:
            return CacheFile(path, limits)
        except DAMAGE:
            begin_anew(path)
            return CacheFile(path, limits)
    except (apsw.Error, OSError) as error:
        raise UnusableCache(f"The response cache {path} is not used: {error}.") from error
    except RunFileError as error:
        raise UnusableCache(f"The response cache {path} is not used. {error}") from error


def begin_anew(path: Path) -> None:
    """Moves a damaged file aside. Of several processes that find the damage, one does it."""
    try:
        lock = WriterLock(path)
    except HeadraceError:
        return  # another process is at it
    try:
        if _is_damaged(path):
            for ending in ("-journal", "-wal", "-shm", ""):  # the file itself last: its name is what others open
                with suppress(FileNotFoundError):
                    path.with_name(path.name + ending).replace(path.with_name(f"{path.name}.damaged{ending}"))
    finally:
        lock.release()


def _is_damaged(path: Path) -> bool:
    try:
        connection = _connect(path, _WRITER_WAIT_MS, _WRITER_PAGES_KB)
        try:
            _prepare(connection)
            return connection.pragma("quick_check") != "ok"
        finally:
            connection.close()
    except DAMAGE:
        return True


def _connect(path: Path, busy_wait_ms: int, pages_kb: int) -> apsw.Connection:
    with suppress(FileExistsError):
        make_file(path)
    connection = connect(path)
    try:
        connection.set_busy_timeout(_WRITER_WAIT_MS)
        _is_ready(connection)  # what is not ours is refused before anything is changed
        connection.execute(_SETTINGS).fetchall()
        keep_pages(connection, pages_kb)
        connection.set_busy_timeout(busy_wait_ms)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection) -> None:
    """Makes the table where there is none, or one of an older version; refuses a file of another program."""
    if _is_ready(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_ready(connection):  # another process may have been first
            connection.execute(_TABLES)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(apsw.SQLError):  # on a full disk SQLite has already rolled back
            connection.execute("ROLLBACK")
        raise


def _is_ready(connection: apsw.Connection) -> bool:
    # In this order: another process may be making the table, which changes both at once.
    is_used = connection.pragma("schema_version")
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    if application not in (0, APPLICATION_ID) or (application == 0 and is_used):
        raise UnusableCache("The response cache is not used: its file belongs to another program.")
    if version > VERSION:
        raise UnusableCache("The response cache is not used: a newer Headrace wrote it.")
    return application == APPLICATION_ID and version == VERSION
