"""Chooses the part of a plan that a run does: all of it, the first few interviews, or some at random.

A sample is a bitmap, like finished work, and the same for the same seed: run again, it goes on; run without it, the
rest follows. Does not cover: in which order interviews come (interviews.cursors).
"""

from __future__ import annotations

import random
from array import array
from collections import defaultdict
from collections.abc import Callable

import msgspec

from headrace.plan.bitmap import BLOCK_BITS, Bitmap

_MOST_AT_ONCE = 1 << 21  # numbers drawn before they are put into the set, 2 bytes each


class RunScope(msgspec.Struct, frozen=True, kw_only=True):
    """The interviews that one run was asked for: `total` of those whose ordinal is below `stop`.

    Ordinals never move and a plan grows behind its last one, so these numbers name the same interviews for good,
    however the file grows. `limit` and `sample` are what the run was given, None where it was not.
    """

    stop: int
    total: int
    limit: int | None
    sample: int | None
    seed: int
    is_drawn: bool  # a sample that is smaller than what it was drawn from
    has_gaps: bool  # conditions of the job leave ordinals out

    def passed_over(self, left_out: Bitmap | None) -> Bitmap:
        """Of the ordinals below `stop`, those that the run was not asked for; `left_out` are the job's own."""
        first = self.stop if left_out is None else self.stop - left_out.count_below(self.stop)
        return _passed_over(self.stop, first, self.total, self.seed, left_out)


class Portion:
    """Of the `length` ordinals of a plan, those below `stop` that were chosen; `total` is how many these are.

    `left_out` are the ordinals that the job's conditions leave out (plan.left_out); none counts as one of the first.
    """

    def __init__(
        self, length: int, *, limit: int | None, sample: int | None, seed: int, left_out: Bitmap | None = None
    ) -> None:
        included = length if left_out is None else length - left_out.count
        first = min(limit or included, included)
        self.stop = first if left_out is None else left_out.behind_gaps(first)
        self.total = min(sample or first, first)
        self._left_out = left_out
        if self.total < first:
            self._left_out = _passed_over(length, first, self.total, seed, left_out)
        self.scope = RunScope(
            stop=self.stop,
            total=self.total,
            limit=limit,
            sample=sample,
            seed=seed,
            is_drawn=self.total < first,
            has_gaps=left_out is not None,
        )

    def of(self, done: Bitmap) -> Bitmap:
        """The finished interviews of this portion."""
        part = done.copy()
        if self._left_out is not None:
            part.remove(self._left_out)
        return part

    def count(self, done: Bitmap) -> int:
        return self.of(done).count_below(self.stop)

    def passed_over(self, done: Bitmap) -> Bitmap:
        """The ordinals that this run skips: finished ones, and those that were not chosen."""
        if self._left_out is None:
            return done
        both = self._left_out.copy()
        both.include(done)
        return both


def _passed_over(length: int, first: int, total: int, seed: int, before: Bitmap | None) -> Bitmap:
    """The ordinals that a sample of `total` leaves out, of the `first` that are not left out `before`."""
    few = min(total, first - total)  # drawing the smaller part meets few that are drawn already
    drawn = _drawn(first, few, seed)
    if before is not None:
        numbers, drawn = drawn, Bitmap(length)
        drawn.update(before.gaps_at(numbers))
    if few < total:  # these are left out
        both = Bitmap(length) if before is None else before.copy()
        both.include(drawn)
        return both
    others = Bitmap(length)
    others.fill(length)
    others.remove(drawn)
    return others


def _drawn(stop: int, count: int, seed: int) -> Bitmap:
    """So many numbers below `stop`, drawn at random."""
    draw = random.Random(seed).randrange
    drawn = Bitmap(stop)
    while drawn.count < count:
        _draw(drawn, min(count - drawn.count, _MOST_AT_ONCE), draw, stop)
    return drawn


def _draw(drawn: Bitmap, count: int, draw: Callable[[int], int], stop: int) -> None:
    """Draw so many numbers below `stop`; those that were drawn already count, too.

    They are sorted by block first: a set that is changed here and there packs and unpacks a block for each number.
    """
    by_block: dict[int, array[int]] = defaultdict(lambda: array("H"))
    for _ in range(count):
        block, place = divmod(draw(stop), BLOCK_BITS)
        by_block[block].append(place)
    for block in sorted(by_block):
        first = block * BLOCK_BITS
        drawn.update([first + place for place in by_block[block]])
