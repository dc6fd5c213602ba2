"""The counts of one column, range by range, and their sum. A range that has changed is taken out of the sum and put in
anew. Pure.

What is held is bounded: at most MOST_KEYS different bars. Numbers beyond that are counted in intervals ten times as
wide, other values as others. Does not cover: counting a range (range_counting).
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass

from msgspec.structs import replace

from headrace.results.plots.axes import CategoryAxis, key_of
from headrace.results.plots.counted_columns import MOST_KEYS, ColumnSplit, CountedColumn
from headrace.results.plots.range_counting import OTHERS, BarKey, RangeCounts
from headrace.store.run_file.range_digests import RangeMark


@dataclass(frozen=True, slots=True)
class _KeptRange:
    """`pairs` are places of keys and counts, in turn."""

    mark: RangeMark
    pairs: array[int]


class KeptColumn:
    """`decided_at` is how many interviews the file had when it was decided how to count."""

    def __init__(self, counted: CountedColumn, split: ColumnSplit | None, decided_at: int = 1) -> None:
        self.counted = counted
        self.split = split
        self.decided_at = max(1, decided_at)
        self._ranges: dict[int, _KeptRange] = {}
        self._clear()
        self.rows = 0  # of the file, in the ranges that were counted

    def _clear(self) -> None:
        self._keys: list[BarKey] = []
        self._places: dict[BarKey, int] = {}
        self._sum = Counter[int]()

    def is_like(self, other: KeptColumn) -> bool:
        """Whether another one would count the same by the same groups."""
        counts_alike = replace(self.counted, power=0, samples=()) == replace(other.counted, power=0, samples=())
        return counts_alike and _groups_of(self.split) == _groups_of(other.split)

    def decided_anew(self, like_it: KeptColumn) -> KeptColumn:
        """Itself, with the samples of one that was made now."""
        self.counted = replace(self.counted, samples=like_it.counted.samples)
        self.decided_at = like_it.decided_at
        return self

    def mark_of(self, number: int) -> RangeMark | None:
        """How the range was when it was counted."""
        kept = self._ranges.get(number)
        return None if kept is None else kept.mark

    def put(self, number: int, mark: RangeMark, counts: RangeCounts) -> None:
        """Keep the counts of a range, in place of those that it had. They were counted as `counted` says."""
        self._take_out(number)
        while self.counted.is_by_number and self._has_too_many(counts):
            self._widen()
            counts = _widened(counts)
        self._ranges[number] = _KeptRange(mark, self._added(counts))
        self.rows += mark.rows

    def counts(self) -> RangeCounts:
        """The sum over all ranges."""
        keys = self._keys
        return Counter({keys[place]: count for place, count in self._sum.copy().items() if count})

    def _take_out(self, number: int) -> None:
        kept = self._ranges.pop(number, None)
        if kept is not None:
            self.rows -= kept.mark.rows
            for place, count in _pairs(kept.pairs):
                self._sum[place] -= count

    def _has_too_many(self, counts: RangeCounts) -> bool:
        new = sum(key not in self._places for key in counts)
        return len(self._keys) + new > MOST_KEYS

    def _widen(self) -> None:
        """Count in intervals ten times as wide from now on."""
        self.counted = replace(self.counted, power=self.counted.power + 1)
        before, keys = self._ranges, self._keys
        self._ranges = {}
        self._clear()
        for number, kept in before.items():
            counts = RangeCounts()
            for place, count in _pairs(kept.pairs):
                counts[_wider(keys[place])] += count
            self._ranges[number] = _KeptRange(kept.mark, self._added(counts))

    def _added(self, counts: RangeCounts) -> array[int]:
        pairs = array("q")
        found = Counter[int]()
        for key, count in counts.items():
            found[self._place(key)] += count
        for place, count in found.items():
            self._sum[place] += count
            pairs.extend((place, count))
        return pairs

    def _place(self, key: BarKey) -> int:
        place = self._places.get(key)
        if place is None:
            if len(self._keys) >= MOST_KEYS and isinstance(key[0], tuple):
                return self._place((OTHERS, key[1]))
            place = self._places[key] = len(self._keys)
            self._keys.append(key)
        return place


def _groups_of(split: ColumnSplit | None) -> object:
    """What tells splits apart: not the order of groups, which changes with every row."""
    if split is None:
        return None
    axis = split.axis
    groups = frozenset(map(key_of, axis.values)) if isinstance(axis, CategoryAxis) else axis.bins
    return split.column, split.kinds, groups


def _pairs(pairs: array[int]) -> zip[tuple[int, int]]:
    return zip(pairs[::2], pairs[1::2], strict=True)


def _widened(counts: RangeCounts) -> RangeCounts:
    wide = RangeCounts()
    for key, count in counts.items():
        wide[_wider(key)] += count
    return wide


def _wider(key: BarKey) -> BarKey:
    bar, group = key
    return (bar // 10, group) if isinstance(bar, int) else key
