"""Keeps a large reply on disk until it fits into the memory that its process has left.

Replies that were asked for together arrive together, and each exists several times at once while it is decoded, kept
and sent on. In a worker that is death, and all of them are paid again; in a survey's own process it passes the budget.
So a body that has come whole stays in its file until the memory for it is there: as much as it will take, or nearly all
that there ever was. Once no other reply has been read for a moment nobody is left who could give memory back, and it is
read anyway; not while a commit is under way, which gives its rows' memory back however long the disk takes. Replies are
read in the order in which they came, and only the first in line looks at the memory.

There are two rooms: what the hard limit of a worker leaves (`ReplyRoom`), and what the budgets of the surveys in this
process leave (`BudgetRoom`). While replies are held back, an interview that waits for one holds next to nothing, and
many may wait (interviews.window). Does not cover: processes with neither, in which no reply waits.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from headrace.memory.measure.process import own_data_bytes, own_resident_bytes
from headrace.memory.reclaiming import reclaim_quickly

try:
    import resource
except ImportError:  # Windows
    resource = None

_COPIES = 8  # of a reply: as it came, as text, kept, encoded, framed, and what buffers grow by
_NEARLY_ALL = 0.8
_LOOK_EVERY_S = 0.01
# Looks are counted, not time: a process that gets no turn does nothing with what it has let through either.
_QUIET_LOOKS = 100
_SETTLED_AFTER_LOOKS = 25  # by then what was let through shows in what is in use
_SETTLED_AFTER_S = 5.0  # where nobody was looking
# In a process that writes rows itself a reply becomes a row before another one is looked at, and the row shows in what
# is resident. It exists as it came, as text, and both of them encoded; then compressed, beside what is being written.
_BUDGET_COPIES = 6
# One reply of a megabyte takes 10 ms until it is a row; looking at what is resident takes 20 us.
_BUDGET_LOOK_EVERY_S = 0.002
_BUDGET_QUIET_LOOKS = 50
_BUDGET_SETTLED_AFTER_LOOKS = 1
_GAIN_EVERY_S = 0.01


def free_bytes() -> int | None:
    """How much memory this process may still allocate; None where it has no limit, or it cannot be read."""
    if resource is None:
        return None
    limit_bytes = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit_bytes == resource.RLIM_INFINITY:
        return None
    used_bytes = own_data_bytes()[1]
    return limit_bytes - used_bytes if used_bytes else None


class ReplyRoom:
    """`free` tells how much memory there is now, None for any amount. A reply takes `copies` times its size."""

    def __init__(
        self,
        free: Callable[[], int | None] = free_bytes,
        *,
        copies: int = _COPIES,
        quiet_looks: int = _QUIET_LOOKS,
        settled_after_looks: int = _SETTLED_AFTER_LOOKS,
        look_every_s: float = _LOOK_EVERY_S,
    ) -> None:
        self._free = free
        self._copies = copies
        self._look_every_s = look_every_s
        self.quiet_looks = quiet_looks
        self._settled_after_looks = settled_after_looks
        self._most_bytes = 0
        self._looks = self._quiet_looks = 0
        self._looked_s = 0.0
        self._let_through: deque[tuple[int, float, int]] = deque()  # look, time, and how much it will take
        self._first_in_line: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def wait_for(self, reply_bytes: int) -> None:
        """Waits until a reply of this size may be read."""
        needed_bytes = self._copies * reply_bytes
        async with self._first_in_line.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            while not self._lets_through(needed_bytes):  # noqa: ASYNC110 - polled
                await asyncio.sleep(self._look_every_s)

    def _lets_through(self, needed_bytes: int) -> bool:
        if not self._has_room(needed_bytes) and (self._quiet_looks < self.quiet_looks or self.awaits_a_commit):
            return False
        self._quiet_looks = 0
        self._let_through.append((self._looks, time.monotonic(), needed_bytes))
        return True

    @property
    def awaits_a_commit(self) -> bool:
        """Whether memory is about to come back by itself: then a look without a change says nothing."""
        return False

    def _gain(self) -> int:
        """Make room, where that is possible; how many bytes that gave."""
        return 0

    def _has_room(self, needed_bytes: int) -> bool:
        free_bytes = self._free()
        if free_bytes is None:
            self._let_through.clear()
            return True
        is_new = self._count_look()
        self._most_bytes = max(self._most_bytes, free_bytes)
        missing_bytes = min(needed_bytes, self._most_bytes * _NEARLY_ALL) - (free_bytes - self._taken_bytes())
        if missing_bytes > 0 and is_new:
            missing_bytes -= self._gain()
        return missing_bytes <= 0

    def _taken_bytes(self) -> int:
        return sum(each for _, _, each in self._let_through)

    def _count_look(self) -> bool:
        """Counts one look for each turn of the loop, however many replies wait; whether this is the turn's first."""
        now_s = time.monotonic()
        is_new = now_s - self._looked_s >= self._look_every_s / 2
        if is_new:
            self._looks += 1
            # Not back to 0 for a commit: those of other surveys, one after the other, would hold a reply back for good.
            self._quiet_looks += not self.awaits_a_commit
            self._looked_s = now_s
        while self._let_through and (
            self._looks - self._let_through[0][0] > self._settled_after_looks
            or now_s - self._let_through[0][1] > _SETTLED_AFTER_S
        ):
            self._let_through.popleft()
        return is_new


class BudgetRoom(ReplyRoom):
    """The room that memory budgets leave. Each is of the whole process, so the smallest counts."""

    def __init__(self, resident: Callable[[], int] = own_resident_bytes) -> None:
        super().__init__(
            self._left,
            copies=_BUDGET_COPIES,
            quiet_looks=_BUDGET_QUIET_LOOKS,
            settled_after_looks=_BUDGET_SETTLED_AFTER_LOOKS,
            look_every_s=_BUDGET_LOOK_EVERY_S,
        )
        self._resident = resident
        self._gained_s = 0.0
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a fork no survey goes on, and no thread is left that would release the lock."""
        self._bounds: dict[object, int] = {}  # by who runs within them
        self._commits = 0  # under way
        self._one_at_a_time = threading.Lock()  # surveys run on threads of their own

    def bound(self, owner: object, most_resident_bytes: int) -> None:
        """Hold replies back that would make this process larger than so many bytes, until `unbound`."""
        self._bounds[owner] = most_resident_bytes

    def unbound(self, owner: object) -> None:
        self._bounds.pop(owner, None)

    @contextmanager
    def committing(self) -> Generator[None]:
        """While rows are being written their memory is about to come back: no reply is read for want of others."""
        self._count_commits(1)
        try:
            yield
        finally:
            self._count_commits(-1)

    @property
    def awaits_a_commit(self) -> bool:
        return self._commits > 0

    def _count_commits(self, more: int) -> None:
        with self._one_at_a_time:
            self._commits += more

    def _lets_through(self, needed_bytes: int) -> bool:
        with self._one_at_a_time:
            return super()._lets_through(needed_bytes)

    def _left(self) -> int | None:
        bounds = list(self._bounds.values())  # at once: surveys on other threads begin and end
        return min(bounds) - self._resident() if bounds else None

    def _gain(self) -> int:
        # The pieces that bodies came in leave holes, which the C library would keep, and SQLite's cache is full of the
        # texts of the rows before.
        now_s = time.monotonic()
        if now_s - self._gained_s < _GAIN_EVERY_S:
            return 0
        self._gained_s = now_s
        before_bytes = self._resident()
        reclaim_quickly()
        return before_bytes - self._resident()


WITHIN_BUDGETS = BudgetRoom()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WITHIN_BUDGETS.forget)
