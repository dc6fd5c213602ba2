"""Keeps a large reply on disk until it fits into the memory that a process with a hard limit has left.

Replies that were asked for together arrive together, and each exists several times at once while it is decoded, kept
and sent on. In a worker that is death, and all of them are paid again. So a body that has come whole stays in its file
until the memory for it is there: as much as it will take, or nearly all that there ever was. Once no other reply has
been read for a moment nobody is left who could give memory back, and it is read anyway.

Does not cover: processes without a limit, which wait for nothing (interviews.admission bounds them).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from headrace.memory.measure.process import own_data_bytes

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
    def __init__(self, free: Callable[[], int | None] = free_bytes) -> None:
        self._free = free
        self._most_bytes = 0
        self._looks = self._quiet_looks = 0
        self._looked_s = 0.0
        self._let_through: deque[tuple[int, float, int]] = deque()  # look, time, and how much it will take

    async def wait_for(self, reply_bytes: int) -> None:
        """Waits until a reply of this size may be read."""
        needed_bytes = _COPIES * reply_bytes
        while not self._has_room(needed_bytes) and self._quiet_looks < _QUIET_LOOKS:  # noqa: ASYNC110 - polled
            await asyncio.sleep(_LOOK_EVERY_S)
        self._quiet_looks = 0
        self._let_through.append((self._looks, time.monotonic(), needed_bytes))

    def _has_room(self, needed_bytes: int) -> bool:
        free_bytes = self._free()
        if free_bytes is None:
            self._let_through.clear()
            return True
        self._count_look()
        self._most_bytes = max(self._most_bytes, free_bytes)
        taken_bytes = sum(each for _, _, each in self._let_through)
        return free_bytes - taken_bytes >= min(needed_bytes, self._most_bytes * _NEARLY_ALL)

    def _count_look(self) -> None:
        """Reads memory once for each turn of the loop, however many replies wait."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_EVERY_S / 2:
            self._looks += 1
            self._quiet_looks += 1
            self._looked_s = now_s
        while self._let_through and (
            self._looks - self._let_through[0][0] > _SETTLED_AFTER_LOOKS
            or now_s - self._let_through[0][1] > _SETTLED_AFTER_S
        ):
            self._let_through.popleft()
