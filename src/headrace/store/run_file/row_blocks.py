"""Which interviews have a row, by blocks of ordinals: a long file is opened without reading all its rows.

    a commit adds rows to a block  ──► the block's bits are deleted from the table, in the same transaction
    a block rests                  ──► its bits are written with a later commit
    opening                        ──► the bits of blocks that rest, and the rows of the few others

A block is in the table `row_blocks` exactly while its bits are those of all its rows: a kill at any moment leaves it
so. An older Headrace adds rows and leaves the table alone. The rows that are found are then fewer than the file has
counted: all are read, and the table is written anew. Most files are short and never get the table.

Does not cover: files that keep no rows (keeping.finished_bits), or which finished interviews are asked again
(finished).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import apsw
import zstandard

from headrace.plan.bitmap import BLOCK_BITS, BLOCK_BYTES, EMPTY_BLOCK, Bitmap
from headrace.store.contents import UNREADABLE, damaged, raw_rows
from headrace.store.run_file.interview_queries import check_none_is_missing, counted_interviews
from headrace.store.run_file.run_schema import add_row_blocks, has_row_blocks
from headrace.store.verification import Verification

_MOST_CHANGING = 8  # blocks beside the table; opening reads their rows
_PLACES, _PLACE_BYTES = 64, 128  # where rows of a long file are counted, as a check: 1,024 ordinals each


class RowBlocks:
    """The blocks of one file that is being written. `stored` are the ordinals with a row, as far as committed."""

    def __init__(self, connection: apsw.Connection, stored: Bitmap, kept: Bitmap, *, is_untrue: bool = False) -> None:
        self.stored = stored
        self._is_untrue = is_untrue  # what the table has is not that of the rows
        self._connection = connection
        self._kept = kept  # the numbers of the blocks in the table
        self._changing = dict.fromkeys(
            each for each in stored.blocks if each not in kept and stored.block(each) != EMPTY_BLOCK
        )
        self._touched: set[int] = set()
        self._resting: list[int] = []  # written by the transaction that goes on
        self._compress = zstandard.ZstdCompressor(level=3).compress

    @classmethod
    def load(cls, connection: apsw.Connection, path: Path, size: int) -> RowBlocks:
        """Find the rows of a plan of `size` interviews; refused where some are missing, or none of the plan."""
        # Two queries: SQLite finds either end at once, and both in one by reading every row.
        first, last = (connection.execute(f"SELECT {end}(ordinal) FROM interviews").get for end in ("min", "max"))
        if last is not None and (first < 0 or last >= size):
            raise damaged(path, f"interview {first if first < 0 else last} is none of its plan")
        if has_row_blocks(connection):
            stored, kept = _read_blocks(connection, size)
            if stored.count == counted_interviews(connection) and _has_rows(connection, stored, kept):
                return cls(connection, stored, kept)
        check_none_is_missing(connection, path)
        stored = Bitmap(size)
        if last is not None and last + 1 == counted_interviews(connection):  # no holes: nothing to look for
            stored.fill(last + 1)
        else:
            stored.update(_ordinals(connection, 0, size))
        return cls(connection, stored, Bitmap(len(stored.blocks)), is_untrue=has_row_blocks(connection))

    @property
    def is_table_due(self) -> bool:
        """Whether the file is long, and its table is missing or not true."""
        return len(self._changing) > 2 * _MOST_CHANGING or self._is_untrue

    def write_anew(self) -> None:
        """Write the table of a long file that an older Headrace wrote, inside the caller's transaction, which
        `committed` follows.
        """
        add_row_blocks(self._connection)
        self._connection.execute("DELETE FROM row_blocks")
        self.write(())
        self._is_untrue = False

    def write(self, ordinals: Sequence[int]) -> None:
        """Note that these get rows, inside the transaction that writes them and before they are in `stored`."""
        self._touched = {ordinal // BLOCK_BITS for ordinal in ordinals}
        for number in self._touched:
            if number in self._kept:
                self._connection.execute("DELETE FROM row_blocks WHERE block = ?", (number,))
        too_many = len(self._changing) - _MOST_CHANGING
        resting = [number for number in self._changing if number not in self._touched] if too_many > 0 else []
        self._resting = resting[: max(too_many, 0)]
        if self._resting:
            add_row_blocks(self._connection)
        for number in self._resting:
            packed = self._compress(bytes(self.stored.block(number)))
            row = (number, packed, _checksum(number, packed))
            self._connection.execute("INSERT OR REPLACE INTO row_blocks VALUES(?, ?, ?)", row)

    def committed(self) -> None:
        """The transaction of the last `write` is on disk."""
        for number in self._resting:
            del self._changing[number]
        self._kept.update(self._resting)
        for number in self._touched:
            self._kept.discard(number)
            self._changing.pop(number, None)  # the latest is the last
            self._changing[number] = None
        self._touched, self._resting = set(), []


def check_row_blocks(connection: apsw.Connection, found: Verification, size: int) -> None:
    """Compare the bits of each block with its rows."""
    if not has_row_blocks(connection):
        return
    counted = "SELECT count(*) FROM interviews WHERE ordinal >= ? AND ordinal < ?"
    for number, bits in _read_table(connection, -(-size // BLOCK_BITS)):
        found.rows += 1
        first, held = number * BLOCK_BITS, int.from_bytes(bits, "little").bit_count()
        if connection.execute(counted, (first, first + BLOCK_BITS)).get != held:
            found.note("row blocks", "is not that of its rows", number)


def _read_blocks(connection: apsw.Connection, size: int) -> tuple[Bitmap, Bitmap]:
    """The ordinals with a row, and the blocks that the table has: none where it cannot be read."""
    stored = Bitmap(size)
    kept = Bitmap(len(stored.blocks))
    try:
        for number, bits in _read_table(connection, len(stored.blocks)):
            stored.put_block(number, bits)
            kept.add(number)
    except UNREADABLE:
        return Bitmap(size), Bitmap(len(stored.blocks))
    for first, behind in _not_in(kept):
        stored.update(_ordinals(connection, first * BLOCK_BITS, behind * BLOCK_BITS))
    return stored, kept


def _read_table(connection: apsw.Connection, count: int) -> Iterator[tuple[int, bytes]]:
    decompress = zstandard.ZstdDecompressor(max_window_size=1 << 20).decompress
    sql = f"SELECT block, bits, checksum FROM row_blocks WHERE length(bits) <= {2 * BLOCK_BYTES} ORDER BY block"
    for number, packed, checksum in raw_rows(connection, sql):
        bits = decompress(packed, max_output_size=BLOCK_BYTES)
        if number not in range(count) or len(bits) != BLOCK_BYTES or checksum != _checksum(number, packed):
            raise ValueError(f"the rows of block {number} are not as they were written")
        yield number, bits


def _not_in(kept: Bitmap) -> Iterator[tuple[int, int]]:
    """The stretches of numbers that are not in a set: the first, and the one behind the last."""
    first = kept.next_gap(0)
    for number in kept:
        if number > first:
            yield first, number
        first = max(first, number + 1)
    if first < kept.length:
        yield first, kept.length


def _has_rows(connection: apsw.Connection, stored: Bitmap, kept: Bitmap) -> bool:
    """Whether the blocks of the table have as many rows as bits, in places spread evenly over them."""
    counted = "SELECT count(*) FROM interviews WHERE ordinal >= ? AND ordinal < ?"
    for place, number in enumerate(list(kept)[:: max(1, kept.count // _PLACES)]):
        at = place * 1009 % (BLOCK_BYTES // _PLACE_BYTES) * _PLACE_BYTES
        bits = stored.block(number)[at : at + _PLACE_BYTES]
        first = number * BLOCK_BITS + at * 8
        if connection.execute(counted, (first, first + _PLACE_BYTES * 8)).get != int.from_bytes(bits).bit_count():
            return False
    return True


def _ordinals(connection: apsw.Connection, first: int, behind: int) -> Iterator[int]:
    sql = "SELECT ordinal FROM interviews WHERE ordinal >= ? AND ordinal < ? ORDER BY ordinal"
    return (ordinal for (ordinal,) in raw_rows(connection, sql, (first, behind)))


def _checksum(number: int, packed: bytes) -> int:
    return crc32(packed, crc32(f"{number}".encode()))
