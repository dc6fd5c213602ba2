"""Decides which interview comes next: one cursor a model, so that each can be held by itself. Pure.

Does not cover: how many may be in flight (interviews.window).
"""

from __future__ import annotations

from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Plan


class Cursors:
    """Walks a plan's unfinished ordinals, the models taking turns, each ordinal at most once."""

    def __init__(self, plan: Plan, done: Bitmap, stop: int) -> None:
        self._done = done
        self._cursors = [_Cursor(plan, model, min(stop, len(plan))) for model in range(plan.shape.model)]
        self._turn = 0

    def take(self, count: int) -> list[int]:
        """Take at most `count` ordinals; fewer only where all cursors are held or at their end."""
        taken: list[int] = []
        ended = 0
        while len(taken) < count and ended < len(self._cursors):
            cursor = self._cursors[self._turn]
            ordinal = None if cursor.is_held else cursor.next(self._done)
            self._turn = (self._turn + 1) % len(self._cursors)
            if ordinal is None:
                ended += 1
            else:
                ended = 0
                taken.append(ordinal)
        return taken

    def is_at_end(self) -> bool:
        """Whether nothing is left to take, now or later."""
        return not any(cursor.has_next(self._done) for cursor in self._cursors if not cursor.is_dropped)

    def hold(self, model: int) -> None:
        """Take nothing of this model until it is let go."""
        self._cursors[model].is_held, self._cursors[model].is_dropped = True, False

    def let_go(self, model: int) -> None:
        self._cursors[model].is_held = self._cursors[model].is_dropped = False

    def drop(self, model: int) -> None:
        """Take nothing of this model, and do not wait until it is let go."""
        self._cursors[model].is_held = self._cursors[model].is_dropped = True


class _Cursor:
    """One model's ordinals: in each box, every `sides.model`-th one."""

    def __init__(self, plan: Plan, model: int, stop: int) -> None:
        self._plan = plan
        self._model = model
        self._stop = stop
        self._box = -1
        self._at = self._end = 0
        self._step = 1
        self.is_held = False
        self.is_dropped = False

    def next(self, done: Bitmap) -> int | None:
        while True:
            ordinal = self._undone(done)
            if ordinal is not None:
                self._at = ordinal + self._step
                return ordinal
            if not self._enter_next_box():
                return None

    def has_next(self, done: Bitmap) -> bool:
        ordinal = self.next(done)
        if ordinal is not None:
            self._at = ordinal  # looked at, and left where it is
        return ordinal is not None

    def _undone(self, done: Bitmap) -> int | None:
        at, end, step = self._at, self._end, self._step
        if step == 1:
            at = done.next_gap(at) if at < end else end
        else:
            while at < end and at in done:
                gap = done.next_gap(at)  # of any model: what is left out may be millions in a row
                at = gap + (at - gap) % step
        self._at = at
        return at if at < end else None

    def _enter_next_box(self) -> bool:
        self._box += 1
        if self._box >= len(self._plan.boxes) or self._plan.bases[self._box] >= self._stop:
            self._box = len(self._plan.boxes)  # stay at the end
            return False
        box, base = self._plan.boxes[self._box], self._plan.bases[self._box]
        self._step = box.sides[3]
        is_in_box = box.low.model <= self._model < box.high.model  # a merged plan has boxes of some models only
        self._at = base + self._model - box.low.model if is_in_box else base
        self._end = min(base + box.size, self._stop) if is_in_box else base
        return True
