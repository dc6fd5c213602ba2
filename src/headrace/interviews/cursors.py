"""Decides which interview comes next: one cursor a model, so that each can be held by itself. Pure.

Does not cover: how many may be in flight (interviews.window).
"""

from __future__ import annotations

from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Plan


class Cursors:
    """Walks a plan's unfinished ordinals, the models taking turns, each ordinal at most once; then once more those that
    are to be asked again.
    """

    def __init__(self, plan: Plan, done: Bitmap, stop: int) -> None:
        self._plan = plan
        self._stop = min(stop, len(plan))
        self._walks = [self._walk(done)]
        self._held = [False] * plan.shape.model
        self._dropped = [False] * plan.shape.model

    def take(self, count: int) -> list[int]:
        """Take at most `count` ordinals; fewer only where all cursors are held or at their end."""
        taken: list[int] = []
        for walk in self._walks:
            taken += walk.take(count - len(taken), self._held)
        return taken

    def again(self, passed_over: Bitmap) -> None:
        """Walk the plan once more, behind what is still to come: the ordinals that are not `passed_over`."""
        self._walks = [walk for walk in self._walks if walk.has_next([False] * len(self._held))]
        self._walks.append(self._walk(passed_over))

    def is_at_end(self) -> bool:
        """Whether nothing is left to take, now or later."""
        return not any(walk.has_next(self._dropped) for walk in self._walks)

    def hold(self, model: int) -> None:
        """Take nothing of this model until it is let go."""
        self._held[model], self._dropped[model] = True, False

    def let_go(self, model: int) -> None:
        self._held[model] = self._dropped[model] = False

    def drop(self, model: int) -> None:
        """Take nothing of this model, and do not wait until it is let go."""
        self._held[model] = self._dropped[model] = True

    def _walk(self, done: Bitmap) -> _Walk:
        return _Walk(done, [_Cursor(self._plan, model, self._stop) for model in range(self._plan.shape.model)])


class _Walk:
    """One way through the plan. `done` may gain ordinals meanwhile, and loses none."""

    def __init__(self, done: Bitmap, cursors: list[_Cursor]) -> None:
        self._done = done
        self._cursors = cursors
        self._turn = 0

    def take(self, count: int, held: list[bool]) -> list[int]:
        taken: list[int] = []
        ended = 0
        while len(taken) < count and ended < len(self._cursors):
            ordinal = None if held[self._turn] else self._cursors[self._turn].next(self._done)
            self._turn = (self._turn + 1) % len(self._cursors)
            if ordinal is None:
                ended += 1
            else:
                ended = 0
                taken.append(ordinal)
        return taken

    def has_next(self, dropped: list[bool]) -> bool:
        pairs = zip(self._cursors, dropped, strict=True)
        return any(cursor.has_next(self._done) for cursor, is_dropped in pairs if not is_dropped)


class _Cursor:
    """One model's ordinals: in each box, every `sides.model`-th one."""

    def __init__(self, plan: Plan, model: int, stop: int) -> None:
        self._plan = plan
        self._model = model
        self._stop = stop
        self._box = -1
        self._at = self._end = 0
        self._step = 1

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
