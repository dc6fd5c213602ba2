"""Where the interview at a place is, in a file whose ordinals have holes: a run that is not finished, or a sample.

SQLite finds a row by its ordinal at once, and by its place only by counting those before it. The rows in each block of
ordinals are therefore counted once, and counted again when the file has changed: no row is ever deleted, so that a
full block stays full: of a run that goes on, only the blocks are counted in which it is at work.

    place ──► the counts of blocks, added up: which block ──► the rows of that block alone

Does not cover: files without holes, and places under a condition (interview_queries).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import accumulate

import apsw

_SMALLEST_BLOCK = 256  # ordinals
_MOST_BLOCKS = 4096
_MOST_HELD = 4  # sets of interviews: the file's, and samples
EVERY_ROW = "interviews i"


class BlockCounts:
    """The counts of one connection. A set of interviews is named by what stands behind FROM, with `i.ordinal`."""

    def __init__(self) -> None:
        self._held: dict[str, _Blocks] = {}

    def clear(self) -> None:
        """Forget all counts: the connection is another one."""
        self._held.clear()

    def ordinal_at(self, connection: apsw.Connection, rows: str, place: int) -> int | None:
        """The ordinal of the row at a place; None where there are no more than `place` rows."""
        return self._blocks(connection, rows).ordinal_at(connection, place)

    def count_below(self, connection: apsw.Connection, rows: str, stop: int) -> int:
        """How many rows have an ordinal below `stop`."""
        return self._blocks(connection, rows).count_below(connection, stop)

    def _blocks(self, connection: apsw.Connection, rows: str) -> _Blocks:
        blocks = self._held.pop(rows, None) or _Blocks(rows)
        while len(self._held) >= _MOST_HELD:
            self._held.pop(next(iter(self._held)))
        blocks.update(connection)
        self._held[rows] = blocks  # the latest is the last
        return blocks


class _Blocks:
    def __init__(self, rows: str) -> None:
        self._rows = rows
        self._is_full_kept = rows == EVERY_ROW  # whether a block of a sample is full, its rows do not tell
        self._version: int | None = None
        self._size = _SMALLEST_BLOCK
        self._counts: list[int] = []  # at most _MOST_BLOCKS
        self._behind: list[int] = []  # how many rows there are up to the end of each block

    def update(self, connection: apsw.Connection) -> None:
        """Count what may have changed since the last time."""
        version = connection.execute("PRAGMA data_version").get  # another one where another connection has committed
        if version == self._version:
            return
        self._version = None  # a count that is interrupted leaves nothing that passes for one
        last: int = connection.execute("SELECT max(ordinal) FROM interviews").get or 0
        blocks = self._counts if self._is_full_kept else []
        size = self._size
        while last // size >= _MOST_BLOCKS:
            blocks, size = [sum(blocks[n : n + 2]) for n in range(0, len(blocks), 2)], 2 * size
        wanted = [number for number in range(last // size + 1) if number >= len(blocks) or blocks[number] < size]
        counted = [*blocks, *[0] * (last // size + 1 - len(blocks))]
        for number, found in zip(wanted, self._counted(connection, wanted, size), strict=True):
            counted[number] = found
        self._counts, self._size, self._behind, self._version = counted, size, list(accumulate(counted)), version

    def ordinal_at(self, connection: apsw.Connection, place: int) -> int | None:
        block = bisect_right(self._behind, place)
        if block == len(self._behind):
            return None
        before = self._behind[block] - self._counts[block]
        return connection.execute(
            f"SELECT i.ordinal FROM {self._rows} WHERE i.ordinal >= ? ORDER BY i.ordinal LIMIT 1 OFFSET ?",
            (block * self._size, place - before),
        ).get

    def count_below(self, connection: apsw.Connection, stop: int) -> int:
        block = stop // self._size
        if block >= len(self._behind):
            return self._behind[-1]
        return (
            self._behind[block]
            - self._counts[block]
            + connection.execute(
                f"SELECT count(*) FROM {self._rows} WHERE i.ordinal >= ? AND i.ordinal < ?", (block * self._size, stop)
            ).get
        )

    def _counted(self, connection: apsw.Connection, blocks: list[int], size: int) -> list[int]:
        # One statement: the clock of the read ends it.
        if not self._is_full_kept:  # one pass: a sample's own bound would make SQLite read each block to the end
            of_blocks = f"SELECT i.ordinal / ?, count(*) FROM {self._rows} GROUP BY 1"
            found = dict(connection.execute(of_blocks, (size,)))
            return [found.get(number, 0) for number in blocks]
        of_block = f"SELECT count(*) FROM {self._rows} WHERE i.ordinal >= b.value * ? AND i.ordinal < (b.value + 1) * ?"
        found = connection.execute(
            f"SELECT ({of_block}) FROM json_each(?) b ORDER BY b.key", (size, size, json.dumps(blocks))
        )
        return [count for (count,) in found]
