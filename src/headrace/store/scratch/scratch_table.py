"""A ScratchTable keeps rows of Python values in a temporary file, and gives them back in their order or sorted.

A value that SQLite has no type for (a bool, a list, NaN, an integer beyond 64 bits, bytes) is a BLOB of tagged JSON,
and comes back as it was. Does not cover: which rows, and what they are sorted by (results.tables).
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, cast

import apsw

from headrace.store.disk_errors import translated_errors
from headrace.store.hardening import harden, keep_time
from headrace.store.queries.query_clock import QueryClock
from headrace.survey.values import SqlValue, decode_value, encode_value

ScratchRow: TypeAlias = tuple[Any, ...]

Row = TypeVar("Row", bound=tuple[Any, ...])

_MOST_ROWS, _MOST_BYTES = 1_000, 4_000_000
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_SETTINGS = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-2000; PRAGMA temp_store=FILE; PRAGMA mmap_size=0;
"""


def pack(value: Any) -> SqlValue:
    """The value as SQLite holds it; equal numbers are equal in this form, and True is not 1."""
    kind = cast("type[object]", type(value))
    if kind is str or value is None:
        return value
    if (kind is int and _INT_MIN <= value <= _INT_MAX) or (kind is float and value == value):
        return value
    return encode_value(value, with_bytes=True)


def pack_row(row: ScratchRow) -> tuple[SqlValue, ...]:
    return tuple([pack(value) for value in row])


def unpack(stored: SqlValue) -> Any:
    return decode_value(stored) if type(stored) is bytes else stored


def next_rows(rows: Iterator[Row]) -> list[Row]:
    """The next rows to be held in memory: a bounded number of them, and of bytes."""
    found: list[Row] = []
    held_bytes = 0
    for row in rows:
        found.append(row)
        held_bytes += sum([len(value) for value in row if type(value) is str or type(value) is bytes])
        if len(found) == _MOST_ROWS or held_bytes > _MOST_BYTES:
            break
    return found


class ScratchTable:
    """Rows with `width` columns, c0, c1 and so on, and the `position` at which each was added, from 1."""

    def __init__(self, width: int, clock: QueryClock) -> None:
        """The clock ends what is done with the table; whoever hands rows over to a user restarts it."""
        self.count = 0
        self._matching = ""
        self._clock = clock
        self.connection = apsw.Connection("")
        harden(self.connection)
        keep_time(self.connection, clock)
        self.connection.execute(_SETTINGS).fetchall()
        self._columns = ", ".join(f"c{number}" for number in range(width))
        self.connection.execute(f"CREATE TABLE rows(position INTEGER PRIMARY KEY, {self._columns})")
        self._insert = f"INSERT INTO rows({self._columns}) VALUES({', '.join('?' * width)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def add(self, packed: Iterable[tuple[SqlValue, ...]]) -> None:
        left = iter(packed)
        while batch := next_rows(left):
            self._clock.check()
            with _in_scratch(), self.connection:
                self.connection.executemany(self._insert, batch)
            self.count += len(batch)

    def index(self, keys: int) -> None:
        """Make the first `keys` columns quick to find rows by."""
        names = [f"c{number}" for number in range(keys)]
        with _in_scratch():
            self.connection.execute(f"CREATE INDEX by_key ON rows({', '.join(names)})")
        self._matching = f"SELECT {self._columns} FROM rows WHERE {' AND '.join(f'{name} = ?' for name in names)}"

    def matching(self, key: Sequence[SqlValue]) -> Iterator[ScratchRow]:
        """The rows with this key in the columns of the index, as they were added."""
        for row in self.connection.execute(f"{self._matching} ORDER BY position", tuple(key)):
            yield _unpacked(row)

    def rows(self, order: Sequence[str] = (), start: int = 0, stop: int | None = None) -> Iterator[ScratchRow]:
        """The rows from `start` up to `stop` in the order of these SQL terms; equal ones as they were added."""
        limit = -1 if stop is None else max(0, stop - start)
        with _in_scratch():
            for row in self.connection.execute(
                f"SELECT {self._columns} FROM rows ORDER BY {', '.join([*order, 'position'])} LIMIT ? OFFSET ?",
                (limit, start),
            ):
                yield _unpacked(row)


def _unpacked(row: ScratchRow) -> ScratchRow:
    return tuple([unpack(value) for value in row]) if bytes in map(type, row) else row


@contextmanager
def _in_scratch() -> Generator[None]:
    with translated_errors(Path(tempfile.gettempdir()), is_read_only=True):
        yield
