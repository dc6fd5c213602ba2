"""Chooses the part of a plan that a run does: all of it, the first few interviews, or some at random.

A sample is a bitmap, like finished work, and the same for the same seed: run again, it goes on; run without it, the
rest follows. Does not cover: in which order interviews come (interviews.cursors).
"""

from __future__ import annotations

import random

import msgspec

from headrace.plan.bitmap import Bitmap


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
    """The ordinals that a sample of `total` leaves out, without ever holding them as a list."""
    if before is None:
        return _not_drawn(length, first, total, seed)
    both = before.copy()
    not_drawn = _not_drawn(first, first, total, seed)
    for number, ordinal in zip(range(first), before.gaps(), strict=False):
        if number in not_drawn:
            both.add(ordinal)
    return both


def _not_drawn(length: int, stop: int, total: int, seed: int) -> Bitmap:
    """Of the numbers below `stop`, those that a sample of `total` leaves out."""
    draw = random.Random(seed).randrange
    drawn = Bitmap(length)
    few = min(total, stop - total)  # drawing the smaller part meets few that are drawn already
    while drawn.count < few:
        drawn.add(draw(stop))
    if few < total:
        return drawn
    everything = Bitmap(length)
    everything.fill(stop)
    everything.remove(drawn)
    return everything
