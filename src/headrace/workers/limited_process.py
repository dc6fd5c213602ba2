"""A process that the warden watches, as the controller sees it. Covers: its limit, its last reading, its end.

Does not cover: messages to it (workers.handle), or how it is made (workers.pool).
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from headrace.workers.wire import Death, DeathKind, KillWorker, SetLimit

ToWardenNow: TypeAlias = Callable[[SetLimit | KillWorker], None]


class LimitedProcess:
    """`used_bytes` is the warden's last reading, of its whole tree; `counted_bytes` what counts against its limit."""

    def __init__(self, id: int, limit_bytes: int, order: ToWardenNow) -> None:
        self.id = id
        self.limit_bytes = limit_bytes
        self.pid = 0
        self.used_bytes = 0
        self.counted_bytes = 0
        self.ended: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        self._order = order
        self._limits_asked: deque[asyncio.Future[int]] = deque()  # each is answered, in order

    async def set_limit(self, limit_bytes: int) -> int:
        """Lend it more, or take back, idle or busy. Returns the limit that now holds: not below what it is using."""
        if self.ended.done():
            return self.limit_bytes
        asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._limits_asked.append(asked)
        self._order(SetLimit(self.id, limit_bytes))
        return await asked

    def kill(self, number: int = signal.SIGKILL, reason: str = "", kind: DeathKind = DeathKind.HUNG) -> None:
        """Kill its whole process tree. With a reason, its death has this kind and this reason."""
        self._order(KillWorker(self.id, number, reason, kind))

    def limit_holds(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._answer_limit()

    def has_ended(self, death: Death) -> None:
        if self.ended.done():
            return
        self.ended.set_result(death)
        while self._limits_asked:
            self._answer_limit()

    def _answer_limit(self) -> None:
        asked = self._limits_asked.popleft()
        if not asked.done():  # the caller may have been cancelled
            asked.set_result(self.limit_bytes)
