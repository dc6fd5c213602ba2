"""Which interviews are finished, where their rows are not kept: a bit each, in compressed blocks.

There is one bitmap of those with all their answers, and one for each cause of failure; an interview is in at most one.
Covers: the bits in memory, and the table `finished`. Does not cover: what else is written of a failed one
(unkept_rows).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import apsw
import zstandard

from headrace.plan.bitmap import Bitmap
from headrace.store.contents import damaged, decoding, raw_rows
from headrace.survey.record import Cause

ANSWERED = ""  # the bitmap of interviews that have all their answers
# A commit writes each block that it touches: a run of neighbours touches one, a sample at random one an interview.
_BLOCK_BYTES = 1024
_BLOCK_BITS = 8 * _BLOCK_BYTES
_NAMES = frozenset({ANSWERED, *(cause.value for cause in Cause)})


class FinishedBits:
    """The bits of one file. Blocks without a bit are not held: a cause that is rare takes next to nothing."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, int], bytearray] = {}
        self._changed: set[tuple[str, int]] = set()  # bounded by a commit
        self._compress = zstandard.ZstdCompressor(level=1).compress

    @classmethod
    def load(cls, connection: apsw.Connection, path: Path, size: int) -> FinishedBits:
        """Read the bits of a plan of `size` interviews; refused where they cannot have been written by us."""
        made, decompress = cls(), zstandard.ZstdDecompressor(max_window_size=1 << 20).decompress
        blocks = -(-size // _BLOCK_BITS)
        sql = f"SELECT cause, block, bits, checksum FROM finished WHERE length(bits) <= {2 * _BLOCK_BYTES}"
        with decoding(path, "what is finished"):
            for cause, block, packed, checksum in raw_rows(connection, sql):
                bits = bytearray(decompress(packed, max_output_size=_BLOCK_BYTES))
                is_ours = cause in _NAMES and block in range(blocks) and len(bits) == _BLOCK_BYTES
                if not is_ours or checksum != _checksum(cause, block, packed):
                    raise ValueError(f"block {block} is not as it was written")
                made._blocks[cause, block] = bits
        if made.bitmap(blocks * _BLOCK_BITS).count != made.count() or any(made._beyond(size)):
            raise damaged(path, "an interview in it is finished twice, or none of its plan")
        return made

    def count(self, causes: Iterable[str] | None = None) -> int:
        """How many interviews ended in one of these ways; None for any."""
        wanted = _NAMES if causes is None else frozenset(causes)
        held = (bits for (cause, _), bits in self._blocks.items() if cause in wanted)
        return sum(int.from_bytes(bits, "little").bit_count() for bits in held)

    def bitmap(self, length: int, causes: Iterable[str] | None = None) -> Bitmap:
        """The interviews that ended in one of these ways, of a plan of `length`."""
        wanted = _NAMES if causes is None else frozenset(causes)
        joined = bytearray(-(-length // _BLOCK_BITS) * _BLOCK_BYTES)
        for (cause, block), bits in self._blocks.items():
            if cause in wanted:
                place = slice(block * _BLOCK_BYTES, (block + 1) * _BLOCK_BYTES)
                both = int.from_bytes(joined[place], "little") | int.from_bytes(bits, "little")
                joined[place] = both.to_bytes(_BLOCK_BYTES, "little")
        return Bitmap.of(length, joined[: (length + 7) // 8])

    def __contains__(self, ended: tuple[int, str]) -> bool:
        """Whether the interview of this ordinal ended in this way."""
        ordinal, cause = ended
        bits = self._blocks.get((cause, ordinal // _BLOCK_BITS))
        at = ordinal % _BLOCK_BITS
        return bits is not None and bool(bits[at >> 3] & (1 << (at & 7)))

    def add(self, ordinal: int, cause: str) -> None:
        """Note how an interview ended. One that ended before must be discarded first."""
        key = cause, ordinal // _BLOCK_BITS
        bits = self._blocks.get(key)
        if bits is None:
            bits = self._blocks[key] = bytearray(_BLOCK_BYTES)
        at = ordinal % _BLOCK_BITS
        bits[at >> 3] |= 1 << (at & 7)
        self._changed.add(key)

    def discard(self, ordinal: int) -> None:
        """Forget how an interview ended."""
        block, at = divmod(ordinal, _BLOCK_BITS)
        for cause in _NAMES:
            if (ordinal, cause) in self:
                self._blocks[cause, block][at >> 3] &= ~(1 << (at & 7))
                self._changed.add((cause, block))

    def write(self, connection: apsw.Connection) -> None:
        """Write the blocks that have changed, inside the caller's transaction."""
        for cause, block in self._changed:
            packed = self._compress(bytes(self._blocks[cause, block]))
            row = (cause, block, packed, _checksum(cause, block, packed))
            connection.execute("INSERT OR REPLACE INTO finished VALUES(?, ?, ?, ?)", row)
        self._changed.clear()

    def _beyond(self, size: int) -> Iterable[bool]:
        """Whether bits behind the plan's end are set, in each block that may have them."""
        block, at = divmod(size, _BLOCK_BITS)
        return (int.from_bytes(bits, "little") >> at > 0 for (_, b), bits in self._blocks.items() if at and b == block)


def _checksum(cause: str, block: int, packed: bytes) -> int:
    return crc32(packed, crc32(f"{cause} {block}".encode()))
