"""Which interviews are finished, where their rows are not kept: a bit each, in compressed parts.

There is one bitmap of those with all their answers, and one for each cause of failure; an interview is in at most one.
Covers: the bits in memory, and the table `finished`. Does not cover: what else is written of a failed one
(unkept_rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import apsw
import zstandard

from headrace.plan.bitmap import BLOCK_BYTES, Bitmap
from headrace.store.contents import damaged, decoding, raw_rows
from headrace.survey.record import Cause

ANSWERED = ""  # the bitmap of interviews that have all their answers
# A commit writes each part that it touches: a run of neighbours touches one, a sample at random one an interview.
_PART_BYTES = 1024
_PART_BITS = 8 * _PART_BYTES
_PARTS = BLOCK_BYTES // _PART_BYTES
_NAMES = frozenset({ANSWERED, *(cause.value for cause in Cause)})


class FinishedBits:
    """The bits of one file, for a plan of `size` interviews: a set for each way to end that was seen."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._ended: dict[str, Bitmap] = {}
        self._changed: set[tuple[str, int]] = set()  # bounded by a commit
        self._compress = zstandard.ZstdCompressor(level=1).compress

    @classmethod
    def load(cls, connection: apsw.Connection, path: Path, size: int) -> FinishedBits:
        """Read the bits of a plan of `size` interviews; refused where they cannot have been written by us."""
        made = cls(size)
        with decoding(path, "what is finished"):
            parts = _read_parts(connection, -(-size // _PART_BITS))
            for (cause, block), some in groupby(parts, key=lambda part: (part.cause, part.number // _PARTS)):
                bits = bytearray(BLOCK_BYTES)
                for part in some:
                    at = part.number % _PARTS * _PART_BYTES
                    bits[at : at + _PART_BYTES] = part.bits
                made._of(cause).put_block(block, bytes(bits))
        found = made.bitmap()
        if found.count != made.count() or found.count_below(size) != found.count:
            raise damaged(path, "an interview in it is finished twice, or none of its plan")
        return made

    def count(self, causes: Iterable[str] | None = None) -> int:
        """How many interviews ended in one of these ways; None for any."""
        return sum(ended.count for ended in self._those(causes))

    def bitmap(self, causes: Iterable[str] | None = None) -> Bitmap:
        """The interviews that ended in one of these ways."""
        found = Bitmap(self._size)
        for ended in self._those(causes):
            found.include(ended)
        return found

    def add(self, ordinals: Iterable[int], cause: str) -> None:
        """Note how interviews ended. Those that ended before must be discarded first."""
        self._of(cause).update(ordinals)
        self._changed.update([(cause, ordinal // _PART_BITS) for ordinal in ordinals])

    def discard(self, ordinal: int) -> None:
        """Forget how an interview ended."""
        for cause, ended in self._ended.items():
            if ordinal in ended:
                ended.discard(ordinal)
                self._changed.add((cause, ordinal // _PART_BITS))

    def write(self, connection: apsw.Connection) -> None:
        """Write the parts that have changed, inside the caller's transaction."""
        for cause, number in self._changed:
            block, at = divmod(number, _PARTS)
            bits = self._ended[cause].block(block)[at * _PART_BYTES : (at + 1) * _PART_BYTES]
            packed = self._compress(bytes(bits))
            row = (cause, number, packed, _checksum(cause, number, packed))
            connection.execute("INSERT OR REPLACE INTO finished VALUES(?, ?, ?, ?)", row)
        self._changed.clear()

    def _of(self, cause: str) -> Bitmap:
        if cause not in self._ended:
            self._ended[cause] = Bitmap(self._size)
        return self._ended[cause]

    def _those(self, causes: Iterable[str] | None) -> list[Bitmap]:
        wanted = _NAMES if causes is None else frozenset(causes)
        return [ended for cause, ended in self._ended.items() if cause in wanted]


class _FinishedPart(NamedTuple):
    """A row of the table `finished`."""

    cause: str
    number: int
    bits: bytes


def _read_parts(connection: apsw.Connection, count: int) -> Iterator[_FinishedPart]:
    """The rows by cause and number; each is checked. A part is a block in the words of the file."""
    decompress = zstandard.ZstdDecompressor(max_window_size=1 << 20).decompress
    sql = (
        f"SELECT cause, block, bits, checksum FROM finished WHERE length(bits) <= {2 * _PART_BYTES}"
        " ORDER BY cause, block"
    )
    for cause, number, packed, checksum in raw_rows(connection, sql):
        bits = decompress(packed, max_output_size=_PART_BYTES)
        is_ours = cause in _NAMES and number in range(count) and len(bits) == _PART_BYTES
        if not is_ours or checksum != _checksum(cause, number, packed):
            raise ValueError(f"block {number} is not as it was written")
        yield _FinishedPart(cause, number, bits)


def _checksum(cause: str, block: int, packed: bytes) -> int:
    return crc32(packed, crc32(f"{cause} {block}".encode()))
