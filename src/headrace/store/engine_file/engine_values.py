"""Values of an engine file: typed reads, statements to be written, and large values, which lie beside their row.

Covers: what runs, steps and notes have in common. Does not cover: their tables (runs, steps, notes).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import apsw
import msgspec

from headrace.store.contents import damaged, decoding, raw_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_schema import MOST_ROW_BYTES
from headrace.survey.values import SqlValue

Write: TypeAlias = tuple[str, tuple[SqlValue, ...]]  # a statement with its bindings
# A run's id and its counts leave room above: a forged one at the end of SQLite's integers could not be counted up.
Id: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
# Part of a statement that an attempt makes: ?1 is the run, ?2 the attempt's epoch. A replaced attempt writes nothing.
IF_CURRENT = "(SELECT epoch FROM runs WHERE id = ?1) = ?2"

_MOST_TEXT_BYTES = 1_000_000
_Row = TypeVar("_Row")


def cut_text(column: str, letters: int) -> str:
    """SQL for the beginning of a text. One that is longer than any an engine writes is not read, so that a file from
    elsewhere takes no memory for it.
    """
    is_long = f"octet_length({column}) > {_MOST_TEXT_BYTES}"
    return f"CASE WHEN {is_long} THEN 'too long to show' ELSE substr({column}, 1, {letters}) END"


class ValueReader:
    """Reads rows through the reading connection, each converted to the types that it must have."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path = path
        self._connection = connection

    def rows(self, as_type: type[_Row], sql: str, bindings: tuple[SqlValue, ...] = ()) -> Iterator[_Row]:
        """A statement's rows; one of other types raises RunFileDamaged, since the file may come from elsewhere."""
        with translated_errors(self.path), decoding(self.path, "what it keeps of its runs"):
            for row in raw_rows(self._connection, sql, bindings):
                yield msgspec.convert(row, as_type)

    def one(self, as_type: Any, sql: str, bindings: tuple[SqlValue, ...] = ()) -> Any:
        """The first row's only value; None where there is no row."""
        types: Any = tuple[as_type | None]
        return next(self.rows(types, sql, bindings), (None,))[0]

    def value(self, sql: str, bindings: tuple[SqlValue, ...]) -> bytes | None:
        """A value that stands in its row, the first column, or in the blob that the second column names."""
        found = next(self.rows(tuple[bytes | None, int | None], sql, bindings), None)
        if found is None:
            return None
        if found[1] is None:
            return found[0]
        data = self.one(bytes, "SELECT data FROM blobs WHERE id = ?", (found[1],))
        if data is None:
            raise damaged(self.path, f"its large value {found[1]} is missing")
        return data

    def highest(self, table: str) -> int:
        """The highest id in a table; 0 where it is empty."""
        return self.one(Count, f"SELECT max(0, max(id)) FROM {table}") or 0


class BlobWrites:
    """Puts values above MOST_ROW_BYTES into the table `blobs`. It numbers them itself: no other process writes."""

    def __init__(self, last_blob: int) -> None:
        self._last = last_blob

    def split(
        self, run: int, data: bytes | None, epoch: int | None = None
    ) -> tuple[bytes | None, int | None, list[Write]]:
        """The value for the row, or the id of its blob, and the statement that writes the blob.

        With an epoch, the blob is written only while that is the run's current one.
        """
        if data is None or len(data) <= MOST_ROW_BYTES:
            return data, None, []
        self._last += 1
        sql = f"INSERT INTO blobs SELECT ?3, ?1, ?4 WHERE ?2 IS NULL OR {IF_CURRENT}"
        return None, self._last, [(sql, (run, epoch, self._last, data))]
