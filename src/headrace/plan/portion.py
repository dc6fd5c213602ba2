"""Chooses the part of a plan that a run does: all of it, the first few interviews, or some at random.

A sample is a bitmap, like finished work, and the same for the same seed: run again, it goes on; run without it, the
rest follows. Does not cover: in which order interviews come (interviews.cursors).
"""

from __future__ import annotations

import random

from headrace.plan.bitmap import Bitmap


class Portion:
    """Of the `length` ordinals of a plan, those below `stop` that were chosen; `total` is how many these are."""

    def __init__(self, length: int, *, limit: int | None, sample: int | None, seed: int) -> None:
        self.stop = min(limit or length, length)
        self.total = min(sample or self.stop, self.stop)
        self._left_out = None if self.total == self.stop else _left_out(length, self.stop, self.total, seed)

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


def _left_out(length: int, stop: int, total: int, seed: int) -> Bitmap:
    """The ordinals that a sample of `total` leaves out, without ever holding them as a list."""
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
