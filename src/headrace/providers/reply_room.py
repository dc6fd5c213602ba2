"""Room in memory for a large reply, in a process with a hard limit: it waits on disk until it fits.

Replies that were asked for together arrive together, and each exists several times at once while it is decoded, kept
and sent on. In a worker that is death, and all of them are paid again. So a body that has come whole stays in its file
until the memory for it is there: as much as it will take, or nearly all that there ever was. Once no other reply has
been read for a moment nobody is left who could give memory back, and it is read anyway.

Does not cover: processes without a limit, which wait for nothing (schedule.admission bounds them).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None

_COPIES = 8  # of a reply: as it came, as text, kept, encoded, framed, and what buffers grow by
_NEARLY_ALL = 0.8
_LOOK_EVERY_S = 0.01
_QUIET_S = 1.0
_SETTLED_AFTER_S = 0.25  # by then what was let through shows in what is in use


def free_bytes() -> int | None:
    """What this process may still take; None where it has no limit, or nobody can tell."""
    if resource is None:
        return None
    limit_bytes = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit_bytes == resource.RLIM_INFINITY:
        return None
    try:
        data_pages = int(Path("/proc/self/statm").read_bytes().split()[5])
    except OSError:
        return None
    return limit_bytes - data_pages * os.sysconf("SC_PAGE_SIZE")


class ReplyRoom:
    def __init__(self, free: Callable[[], int | None] = free_bytes) -> None:
        self._free = free
        self._most_bytes = 0
        self._last_s = 0.0
        self._let_through: deque[tuple[float, int]] = deque()  # when, and how much each will take; bounded by time

    async def wait_for(self, reply_bytes: int) -> None:
        """Returns when a reply of this size may be read."""
        needed_bytes = _COPIES * reply_bytes
        while not self._has_room(needed_bytes) and time.monotonic() < self._last_s + _QUIET_S:  # noqa: ASYNC110 - polled
            await asyncio.sleep(_LOOK_EVERY_S)
        self._last_s = time.monotonic()
        self._let_through.append((self._last_s, needed_bytes))

    def _has_room(self, needed_bytes: int) -> bool:
        free_bytes = self._free()
        if free_bytes is None:
            return True
        while self._let_through and self._let_through[0][0] < time.monotonic() - _SETTLED_AFTER_S:
            self._let_through.popleft()
        self._most_bytes = max(self._most_bytes, free_bytes)
        taken_bytes = sum(each for _, each in self._let_through)
        return free_bytes - taken_bytes >= min(needed_bytes, self._most_bytes * _NEARLY_ALL)
