"""Joins two lists by the values of fields: `inner_join`, `left_join` and `right_join`, as SQL does, in bounded memory.

The rows of the list that is kept come one by one, in their order, each with its partners in theirs: the first pair is
there as soon as the other list is read. That list is held by its keys in RAM up to 32 MB, beyond that in a temporary
SQLite table. Each pair of rows with equal values makes a row. None equals nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from headrace.plan.rows.row_order import comparable
from headrace.survey.values import Fields, decode_fields, encode_fields

if TYPE_CHECKING:
    from headrace.store.scratch.scratch_table import ScratchTable

_HELD_BYTES, _AHEAD_BYTES = 32_000_000, 500_000
_OVERHEAD_BYTES = 250  # of the objects that hold a row and its key
_Key: TypeAlias = Callable[[Fields], bytes | None]


class JoinKind(Enum):
    """Which rows stay that have no partner."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"


def joined_rows(
    left: Iterable[Fields],
    right: Iterable[Fields],
    by: Sequence[str],
    kind: JoinKind,
    names: tuple[Sequence[str], Sequence[str]],
) -> Iterator[Fields]:
    """A row for each pair; `names` are the fields of both lists, which are None in a row without a partner.

    Where both rows have another field, the left one's value counts.
    """
    gaps: Fields = dict.fromkeys([*names[0], *names[1]])
    key, is_right = _key_of(by), kind is JoinKind.RIGHT
    kept, others = (right, left) if is_right else (left, right)
    kept, wanted = _keys_ahead(iter(kept), key)
    with closing(_Partners(_keyed(others, key, wanted))) as partners:
        for fields in kept:
            is_alone = kind is not JoinKind.INNER
            for row in partners.of(key(fields)):
                is_alone, partner = False, decode_fields(row)
                yield {**gaps, **fields, **partner} if is_right else {**gaps, **partner, **fields}
            if is_alone:
                yield {**gaps, **fields}


class _Partners:
    """Rows by their keys, in RAM or in a temporary table."""

    def __init__(self, rows: Iterator[tuple[bytes, bytes]]) -> None:
        self._held: dict[bytes, list[bytes]] = {}
        self._table: ScratchTable | None = None
        held_bytes = 0
        for key, row in rows:
            self._held.setdefault(key, []).append(row)
            held_bytes += len(key) + len(row) + _OVERHEAD_BYTES
            if held_bytes > _HELD_BYTES:
                self._table = self._moved(rows)

    def of(self, key: bytes | None) -> Iterable[bytes | str]:
        if key is None:
            return ()
        if self._table is None:
            return self._held.get(key, ())
        return (row for _, row in self._table.matching((key.decode(),)))

    def close(self) -> None:
        if self._table is not None:
            self._table.close()

    def _moved(self, more: Iterator[tuple[bytes, bytes]]) -> ScratchTable:
        """A table of the rows so far, which are let go, and of the others."""
        from headrace.store.queries.query_clock import QueryClock
        from headrace.store.scratch.scratch_table import ScratchTable

        table = ScratchTable(2, QueryClock(math.inf))
        table.add((key.decode(), row.decode()) for key, rows in self._held.items() for row in rows)
        self._held.clear()
        table.add((key.decode(), row.decode()) for key, row in more)
        table.index(1)
        return table


def _keys_ahead(rows: Iterator[Fields], key: _Key) -> tuple[Iterator[Fields], set[bytes | None] | None]:
    """The rows, and the keys of all of them where they are few: of the other list, no more is held than they need."""
    ahead, held_bytes = list[Fields](), 0
    for fields in rows:
        ahead.append(fields)
        held_bytes += len(encode_fields(fields)[0]) + _OVERHEAD_BYTES
        if held_bytes > _AHEAD_BYTES:
            return chain(ahead, rows), None
    return iter(ahead), set(map(key, ahead))


def _keyed(rows: Iterable[Fields], key: _Key, wanted: set[bytes | None] | None) -> Iterator[tuple[bytes, bytes]]:
    for fields in rows:
        found = key(fields)
        if found is not None and (wanted is None or found in wanted):
            yield found, encode_fields(fields)[0]


def _key_of(by: Sequence[str]) -> _Key:
    def key(fields: Fields) -> bytes | None:
        values = {name: comparable(fields.get(name)) for name in by}
        return None if None in values.values() else encode_fields(values)[0]

    return key
