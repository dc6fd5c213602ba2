"""Other orders of a list's rows: shuffled, sampled, sorted.

The order of a shuffle or a sample with a seed is that of Python's `random`, and so EDSL's. Positions are held in RAM up
to 4 MB, then in a temporary file; sorting goes by parts of some thousand rows, which are written to files and merged.
"""

from __future__ import annotations

import heapq
import marshal
import math
import mmap
import random
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from headrace.errors import ListError, StorageFull
from headrace.plan.rows.spool import SPOOL_IN_RAM_BYTES
from headrace.survey.values import Fields, Remark, decode_fields, encode_fields

Seed: TypeAlias = int | float | str | bytes | None
SortKey: TypeAlias = Callable[[Fields], Any]
Sortable: TypeAlias = tuple[Any, int, bytes]  # a row's key of plain values, its place, and the row as JSON

_ITEM_BYTES = 8
_MOST_IN_RAM = SPOOL_IN_RAM_BYTES // _ITEM_BYTES
_SORTED_TOGETHER, _SORTED_TOGETHER_BYTES = 25_000, 16_000_000
_BLOCK_ROWS, _BLOCK_BYTES = 250, 1 << 17
_ITEM_OVERHEAD_BYTES = 400  # of the objects that hold a row while it is sorted
_MERGED_TOGETHER = 64


def shuffled(length: int, seed: Seed) -> Sequence[int]:
    """All positions in random order; the same for the same seed."""
    positions = _positions(length)
    # The shuffles of one program without a seed differ, as those of `random` do.
    (random.Random(seed) if seed is not None else random).shuffle(positions)
    return positions


def sampled(length: int, count: int, seed: Seed, what: str) -> Sequence[int]:
    """`count` different positions in random order."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ListError(f"A sample of {count!r} cannot be drawn.", fix=f"Say how many {what}s: sample(10, seed=1).")
    if count > length:
        raise ListError(f"A sample of {count:,} cannot be drawn from {length:,} {what}s.", fix="Ask for fewer.")
    if length > _MOST_IN_RAM:
        return shuffled(length, seed)[:count]
    chance = random.Random(seed) if seed is not None else random
    return chance.sample(range(length), count)


def check_fraction(fraction: Any) -> float:
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        raise ListError(f"A list cannot be split at {fraction!r}.", fix="Give a part between 0 and 1.")
    return fraction


def _positions(length: int) -> MutableSequence[int]:
    if length <= _MOST_IN_RAM:
        return array("q", range(length))
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the mapping keeps it open
    file.truncate(length * _ITEM_BYTES)
    with file:
        mapped = memoryview(mmap.mmap(file.fileno(), length * _ITEM_BYTES)).cast("q")
    for position in range(length):
        mapped[position] = position
    return mapped  # pyright: ignore[reportReturnType] # it has what a shuffle needs


def sort_key(names: Sequence[str]) -> SortKey:
    """The key of a row: None before numbers before texts before lists and dicts, whatever the rows hold."""
    if len(names) == 1:
        (only,) = names
        return lambda fields: _ranked(fields.get(only))
    return lambda fields: tuple([_ranked(fields.get(name)) for name in names])


def _ranked(value: Any) -> tuple[int, Any]:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return 0, 0
    if isinstance(value, (int, float)):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, repr(value))


def comparable(value: Any) -> Any:
    """The value as JSON compares it: 1.0 is 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def sorted_rows(rows: Iterable[Fields], key: SortKey, *, reverse: bool) -> Iterator[Fields]:
    return (decode_fields(row) for _, _, row in in_order(keyed_rows(rows, key), reverse=reverse))


def keyed_rows(rows: Iterable[Fields], key: SortKey) -> Iterator[Sortable]:
    """Rows with their keys and places, as they are sorted."""
    for place, fields in enumerate(rows):
        row, remark = encode_fields(fields)
        # A user's own types are compared as the values that are stored for them.
        yield key(fields if remark is Remark.PLAIN else decode_fields(row)), place, row


def in_order(rows: Iterable[Sortable], *, reverse: bool = False) -> Iterator[Sortable]:
    """The rows, sorted by their keys; those with the same key by their places."""
    if reverse:
        turned = ((key, -place, row) for key, place, row in rows)
        return ((key, -place, row) for key, place, row in _in_order(turned, reverse=True))
    return _in_order(rows, reverse=False)


def _in_order(rows: Iterable[Sortable], *, reverse: bool) -> Iterator[Sortable]:
    parts = _parts(rows, _SORTED_TOGETHER, _SORTED_TOGETHER_BYTES)
    runs: list[SortedRun] = []  # at most _MERGED_TOGETHER
    waiting: list[Sortable] = []  # the last part, which needs no file where it is the only one
    for part in parts:
        if waiting:
            runs.append(SortedRun(waiting))
        if len(runs) == _MERGED_TOGETHER:
            runs = [SortedRun(heapq.merge(*runs, reverse=reverse))]
        part.sort(reverse=reverse)
        waiting = part
    return heapq.merge(*runs, waiting, reverse=reverse) if runs else iter(waiting)


def _parts(rows: Iterable[Sortable], most_rows: int, most_bytes: int) -> Iterator[list[Sortable]]:
    part, held_bytes = list[Sortable](), 0
    for item in rows:
        part.append(item)
        held_bytes += 2 * len(item[2]) + _ITEM_OVERHEAD_BYTES  # a key is no longer than its row
        if len(part) >= most_rows or held_bytes >= most_bytes:
            yield part
            part, held_bytes = [], 0
    if part:
        yield part


class SortedRun:
    """Sorted rows in a temporary file, in blocks that are read one after another: keys are computed once."""

    def __init__(self, rows: Iterable[Sortable]) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the run
        weakref.finalize(self, self._file.close)
        try:
            for block in _parts(rows, _BLOCK_ROWS, _BLOCK_BYTES):
                packed = marshal.dumps(block)
                self._file.write(len(packed).to_bytes(_ITEM_BYTES))
                self._file.write(packed)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):  # closing writes what is left, which there is still no room for
                self._file.close()
            raise StorageFull(Path(tempfile.gettempdir()), error.strerror or str(error)) from None

    def __iter__(self) -> Iterator[Sortable]:
        self._file.seek(0)
        while size := self._file.read(_ITEM_BYTES):
            # Written above into a file without a name: nobody else's bytes are read.
            yield from marshal.loads(self._file.read(int.from_bytes(size)))
