"""What agent runs have to tell: kept until it is read; whoever waits for the journal is woken by its acknowledgement.

Bounded by the runs: each has one step, checkpoint or ending on its way, and emitted events are dropped beyond a number
and beyond a size.
Does not cover: chunks of interviews (interviews.outbox).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from headrace.agents.contract import AgentEvent, Emitted
from headrace.executor import Batch

_MOST_EMITTED = 1000
_MOST_EMITTED_BYTES = 16 << 20  # beside the first, which may be larger


class AgentOutbox:
    def __init__(self) -> None:
        self._events: list[AgentEvent] = []
        self._seq = 0
        self._emitted = 0
        self._emitted_bytes = 0
        self._ready = asyncio.Event()
        self._unacked: deque[tuple[int, asyncio.Future[None]]] = deque()

    def tell(self, event: AgentEvent) -> int:
        self._seq += 1
        event.seq = self._seq
        self._events.append(event)
        self._ready.set()
        return self._seq

    async def committed(self, event: AgentEvent) -> None:
        """Tell it, and return when it is on disk."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unacked.append((self.tell(event), future))
        await future

    def entering(self, id: int, step: str) -> None:
        """A step is about to be taken. Nobody has to be told here: a process that dies takes everyone with it."""

    def effect_raised(self, id: int, step: str) -> None:
        """A side effect is over, as `tell` says too: at once, also where the function lets nobody else have a turn."""

    def drop_or_tell(self, event: Emitted) -> None:
        size_bytes = len(event.payload)
        if not self._emitted or (
            self._emitted < _MOST_EMITTED and self._emitted_bytes + size_bytes <= _MOST_EMITTED_BYTES
        ):
            self._emitted += 1
            self._emitted_bytes += size_bytes
            self.tell(event)

    def ack(self, upto: int) -> None:
        unacked = self._unacked
        while unacked and unacked[0][0] <= upto:
            future = unacked.popleft()[1]
            if not future.done():
                future.set_result(None)

    async def batches(self) -> AsyncIterator[Batch[AgentEvent]]:
        while True:
            await self._ready.wait()
            self._ready.clear()
            events, self._events, self._emitted, self._emitted_bytes = self._events, [], 0, 0
            if events:
                yield Batch(self._seq, events)
