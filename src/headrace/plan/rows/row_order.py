"""Other orders of a list's rows: shuffled, sampled, sorted.

The order of a shuffle or a sample with a seed is that of Python's `random`, and so EDSL's. Positions are held in RAM up
to 4 MB, then in a temporary file; sorting goes by parts of some thousand rows, which are spooled and merged.
"""

from __future__ import annotations

import heapq
import math
import mmap
import random
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import Any, TypeAlias

from headrace.errors import ListError
from headrace.plan.rows.spool import SPOOL_IN_RAM_BYTES, Spool
from headrace.survey.values import Fields, decode_fields, encode_fields

Seed: TypeAlias = int | float | str | bytes | None
SortKey: TypeAlias = Callable[[Fields], Any]

_ITEM_BYTES = 8
_MOST_IN_RAM = SPOOL_IN_RAM_BYTES // _ITEM_BYTES
_SORTED_TOGETHER, _SORTED_TOGETHER_BYTES = 10_000, 16_000_000
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
    return lambda fields: tuple(_ranked(fields.get(name)) for name in names)


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
    encoded = (encode_fields(fields)[0] for fields in rows)
    return map(decode_fields, in_order(encoded, key, reverse=reverse))


def in_order(rows: Iterable[bytes], key: SortKey, *, reverse: bool) -> Iterator[bytes]:
    """The rows, sorted; those with the same key stay in the order they have."""
    rows = iter(rows)
    runs: list[Spool | list[bytes]] = []  # each sorted; at most _MERGED_TOGETHER
    is_over = False
    while not is_over:
        part, is_over = _sorted_together(rows)
        part.sort(key=lambda row: key(decode_fields(row)), reverse=reverse)
        if is_over and not runs:
            return iter(part)
        runs.append(Spool.of_encoded(part))
        if len(runs) == _MERGED_TOGETHER:
            runs = [Spool.of_encoded(_merged(runs, key, reverse=reverse))]
    return _merged(runs, key, reverse=reverse)


def _sorted_together(rows: Iterator[bytes]) -> tuple[list[bytes], bool]:
    """The next rows, as many as are sorted in RAM, and whether they are the last."""
    part: list[bytes] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row)
        if len(part) == _SORTED_TOGETHER or size > _SORTED_TOGETHER_BYTES:
            return part, False
    return part, True


def _merged(runs: list[Any], key: SortKey, *, reverse: bool) -> Iterator[bytes]:
    return heapq.merge(*(run.rows() for run in runs), key=lambda row: key(decode_fields(row)), reverse=reverse)
