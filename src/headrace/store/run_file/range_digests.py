"""Digests of ranges of interviews: whoever keeps a copy of a range finds by its digest whether it is still the same.

A row is added when its interview ends, replaced when a failed one is asked again, and dropped and asked again where it
was damaged: each changes the number of rows or the sum of their checksums. Looking at a million rows takes 0.25 s. Does
not cover: what is copied (results.export.parquet_parts).
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias
from zlib import crc32

import apsw
import msgspec

from headrace.store.contents import damaged, decoding, one_value, typed_rows
from headrace.store.run_file.header import RunHeader

RANGE_BITS = 16
RangeDigest: TypeAlias = tuple[int, int]  # how many rows, and a sum of their checksums
FileState: TypeAlias = tuple[tuple[int, int, int, int] | None, ...]

_encode = msgspec.msgpack.Encoder().encode


def file_state(path: Path) -> FileState:
    """What changes whenever something is committed: the sizes and times of the file and its log."""
    found: list[tuple[int, int, int, int] | None] = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            status = each.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def made_at(connection: apsw.Connection) -> float:
    """When the file was made: another file at the same path was made at another time."""
    return one_value(connection, float, "SELECT value FROM meta WHERE key = 'created_at'")


def range_digests(connection: apsw.Connection, header: RunHeader) -> dict[int, RangeDigest]:
    """The digest of each range that has rows, by its number: range 1 begins with ordinal 65,536."""
    checksum = "checksum" if header.has_checksums else "NULL"
    # A range at a time: to group all of them, SQLite would sort them first.
    sql = (
        f"SELECT count(*), count({checksum}), sum({checksum} >> 32) FROM interviews WHERE ordinal >= ? AND ordinal < ?"
    )
    digests: dict[int, RangeDigest] = {}  # one for 65,536 interviews
    with decoding(header.path, "the checksums of its interviews"):
        number = _range_from(connection, -(2**63))
        while number is not None:
            if number < 0:
                raise damaged(header.path, "an interview has a number below 0")
            if number in digests:  # in a damaged table keys may be out of order, and this would never end
                raise damaged(header.path, "its interviews are out of order")
            bounds = number << RANGE_BITS, (number + 1) << RANGE_BITS
            ((rows, checked, total),) = typed_rows(connection, tuple[int, int, int | None], sql, bounds)
            digests[number] = (rows, total if checked == rows and total is not None else _sum(connection, number))
            number = _range_from(connection, bounds[1])
    return digests


class RangeMark(msgspec.Struct, frozen=True):
    """What tells a range of interviews from the same range at another time: its rows, those of them that failed, and a
    sum of their checksums. Rows of an older Headrace have none: such a row is replaced by one that has.
    """

    rows: int
    failed: int
    digest: int

    def is_final(self, size: int) -> bool:
        """Whether no run that goes on changes a range of `size` ordinals: all have answers, which none asks again."""
        return self.rows == size and not self.failed


def range_mark(connection: apsw.Connection, header: RunHeader, first: int, stop: int) -> RangeMark:
    """The mark of the interviews with ordinals from `first` up to `stop`."""
    checksum = "checksum" if header.has_checksums else "NULL"
    sql = (
        f"SELECT count(*), coalesce(sum(status <> 0), 0), coalesce(sum({checksum} >> 32), 0) FROM interviews"
        " WHERE ordinal >= ? AND ordinal < ?"
    )
    with decoding(header.path, "the checksums of its interviews"):
        ((rows, failed, digest),) = typed_rows(connection, tuple[int, int, int], sql, (first, stop))
    return RangeMark(rows, failed, digest)


def _range_from(connection: apsw.Connection, ordinal: int) -> int | None:
    """The number of the first range that has an interview with this ordinal or a later one."""
    sql = f"SELECT min(ordinal) >> {RANGE_BITS} FROM interviews WHERE ordinal >= ?"
    return one_value(connection, int | None, sql, (ordinal,))


def _sum(connection: apsw.Connection, number: int) -> int:
    """The same for a range with rows that an older Headrace wrote, without checksums."""
    first = number << RANGE_BITS
    found = connection.execute(
        "SELECT * FROM interviews WHERE ordinal >= ? AND ordinal < ?", (first, first + (1 << RANGE_BITS))
    )
    return sum(crc32(_encode(row)) for row in found)
