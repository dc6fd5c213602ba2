"""Run files and engine files as wholes: copying one, making one smaller, and looking through all of it for damage.

Does not cover: removing a run file (run_file.removal), or exports, which are for other programs (results).
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

import apsw

from headrace.errors import OptionError, RunFileBusy
from headrace.store.claim import refuse_live_writer
from headrace.store.connections import open_reader, open_writer
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_schema import check_is_engine_file
from headrace.store.engine_file.engine_verification import verify_engine_file
from headrace.store.formats import ENGINE_FILE, has_format
from headrace.store.live_file import opening, seal
from headrace.store.logs.write_ahead_log import remove_mark
from headrace.store.making import OF_A_WRITER, copy_into, new_database, vacuum_into
from headrace.store.private import make_directory
from headrace.store.run_file.dropping import check_can_be_dropped, drop_damaged, has_damaged_rows
from headrace.store.run_file.keeping.stored_totals import TotalsCheck
from headrace.store.run_file.run_schema import check_is_run_file
from headrace.store.run_file.run_verification import verify_run_file
from headrace.store.transactions import transaction
from headrace.store.verification import Verification


def copy_file(path: Path, target: Path, *, without_log: bool = False) -> None:
    """Copy a file, its log included, as it is at one moment, into one plain file; also while it is written.

    `without_log` copies what there is of a file whose last rows were in a log that is lost.
    """
    if target.exists():
        raise OptionError(f"{target} is there already.", fix="Give a name that is free.")
    connection = open_reader(path, _check_is_ours, needs_log=not without_log)
    try:
        with translated_errors(path):
            make_directory(target.parent)
            copy_into(connection, target)
    finally:
        connection.close()


def verify(path: Path, check_totals: TotalsCheck | None = None) -> Verification:
    """Look through a whole file; raises where it is neither kind of file, or cannot be read at all.

    `check_totals` knows what the states of totals mean (results.totals).
    """
    connection = open_reader(path, _check_is_ours)
    try:
        if has_format(connection, ENGINE_FILE):
            return verify_engine_file(connection, path)
        return verify_run_file(connection, path, check_totals)
    finally:
        connection.close()


class Compaction(NamedTuple):
    """`dropped` interviews were damaged and are not in the file any more; `kept` is the file as it was before that."""

    before_bytes: int
    after_bytes: int
    dropped: int = 0
    kept: Path | None = None


def compact_file(path: Path, *, drop_damaged_rows: bool = False) -> Compaction:
    """Write a file anew without the room that it does not use, and put it in the old one's place.

    Refused while a process writes the file. The new file is whole and on disk before it gets the name; where it would
    be no smaller, the old one stays. `drop_damaged_rows` leaves out what a check of the whole file finds damaged, and
    keeps the file as it was under another name.
    """
    path = path.expanduser().resolve()  # the lock has the file's own name
    open_reader(path, _check_is_ours).close()  # refuses what is not ours before a lock is made beside it
    with opening(path) as lock:
        try:
            before_bytes = _gathered(path)
            source = open_reader(path, _check_is_ours)
            try:
                found = _droppable(source, path) if drop_damaged_rows else None
                return _remade(source, path, found, before_bytes)
            finally:
                source.close()
        finally:
            lock.release()


def _remade(source: apsw.Connection, path: Path, found: Verification | None, before_bytes: int) -> Compaction:
    after_bytes, dropped, kept = before_bytes, 0, None
    vacuumed = new_database(path, lambda making: vacuum_into(source, making))
    with suppress(_NoSmaller), translated_errors(path), vacuumed as copy:
        copy.execute(f"DELETE FROM meta WHERE key IN {OF_A_WRITER}")
        if found is not None:
            dropped = drop_damaged(copy, path, found)
            kept = _under_another_name(source, path)
        after_bytes = int(copy.execute("PRAGMA page_count").get) * int(copy.execute("PRAGMA page_size").get)
        if found is None and after_bytes >= before_bytes:
            raise _NoSmaller
    return Compaction(before_bytes, min(after_bytes, before_bytes), dropped, kept)


class _NoSmaller(Exception):
    """The file would not get smaller."""


def _gathered(path: Path) -> int:
    """Bring a log beside the file into it; returns how large the file and its log were."""
    connection = open_reader(path, _check_is_ours)
    try:
        refuse_live_writer(connection, path)
        is_gathered = connection.pragma("journal_mode") != "wal"
    finally:
        connection.close()
    log = path.with_name(path.name + "-wal")
    before_bytes = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    if not is_gathered:
        writer = open_writer(path)
        try:
            with transaction(writer):
                remove_mark(writer)
            seal(writer)
        except (apsw.BusyError, apsw.LockedError):
            raise RunFileBusy(f"{path} is being read.", path=path, fix="Close its readers, then try again.") from None
        finally:
            writer.close()
    return before_bytes


def _droppable(source: apsw.Connection, path: Path) -> Verification:
    if has_format(source, ENGINE_FILE):
        raise OptionError(f"{path} is an engine's file: its rows cannot be dropped.", fix="Restore a copy.")
    found = verify_run_file(source, path)
    if not has_damaged_rows(found):
        raise OptionError(f"No row of {path} is damaged: there is nothing to drop.", fix="Leave --drop-damaged out.")
    check_can_be_dropped(found)
    return found


def _under_another_name(source: apsw.Connection, path: Path) -> Path:
    """Give the old file a second name, which it keeps when the new one takes its place. A compaction that was killed in
    between has given it one already. A link that leads to the file is no second name: it will lead to the new one.
    """
    for former in path.parent.glob(f"{glob.escape(path.stem)}.damaged-*{glob.escape(path.suffix)}"):
        with suppress(FileNotFoundError):  # it was removed meanwhile
            if os.path.samestat(former.lstat(), path.lstat()):
                return former
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = next(each for each in _names_for(path, stamp) if not os.path.lexists(each))
    try:
        os.link(path, kept)
    except OSError:  # a file system without links
        copy_into(source, kept)
    return kept


def _names_for(path: Path, stamp: str) -> Iterator[Path]:
    yield path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    for number in count(2):
        yield path.with_name(f"{path.stem}.damaged-{stamp}-{number}{path.suffix}")


def _check_is_ours(connection: apsw.Connection, path: Path) -> None:
    (check_is_engine_file if has_format(connection, ENGINE_FILE) else check_is_run_file)(connection, path)
