"""What all workers of a survey tell, in one order: numbered anew, kept until it is read, counted until it is on disk.

Covers: merging, acknowledging to whoever told, and how much may wait here. Does not cover: what the events mean
(interviews.workers.interview_executor), or a worker's own outbox (interviews.outbox).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from headrace.executor import Batch
from headrace.interviews.contract import InterviewEvent
from headrace.interviews.workers.interview_wire import Acked
from headrace.interviews.workers.worker_slot import WorkerSlot


class MergedEvents:
    """`may_read` is not set while more has come than may wait: what came and is not on disk takes memory here."""

    def __init__(self) -> None:
        self._events: list[InterviewEvent] = []
        self._unacked: deque[tuple[int, WorkerSlot, int, int]] = deque()  # seq, whose, in which life, and its own seq
        self._held: deque[tuple[int, int]] = deque()  # seq, and the bytes of the message that it ended
        self._held_bytes = self._most_held_bytes = 0
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self.last_seq = 0
        self.may_read = asyncio.Event()
        self.may_read.set()

    def bound(self, most_bytes: int) -> None:
        self._most_held_bytes = most_bytes
        self._bound_reading()

    def emit(self, event: InterviewEvent) -> None:
        self.last_seq += 1
        event.seq = self.last_seq
        self._events.append(event)
        self._ready.set()

    def answers_for(self, slot: WorkerSlot, worker_seq: int) -> None:
        """With the event that was emitted last, the worker's own of this number is acknowledged."""
        self._unacked.append((self.last_seq, slot, slot.lives, worker_seq))

    def hold(self, since_seq: int, size_bytes: int) -> None:
        """A message of so many bytes has become the events after `since_seq`."""
        if self.last_seq > since_seq:
            self._held.append((self.last_seq, size_bytes))
            self._held_bytes += size_bytes
            self._bound_reading()

    def fail(self, error: BaseException) -> None:
        """Hand an error of the executor itself to whoever reads."""
        self._failure = error
        self._ready.set()

    async def batches(self) -> AsyncIterator[Batch[InterviewEvent]]:
        while True:
            await self._ready.wait()
            self._ready.clear()
            if self._failure is not None:
                raise self._failure
            events, self._events = self._events, []
            if events:
                yield Batch(events[-1].seq, events)

    def ack(self, upto: int) -> None:
        acked: dict[WorkerSlot, int] = {}
        while self._unacked and self._unacked[0][0] <= upto:
            _, slot, life, seq = self._unacked.popleft()
            if slot.lives == life:
                acked[slot] = seq
        for slot, seq in acked.items():
            slot.post(Acked(seq))
        while self._held and self._held[0][0] <= upto:
            self._held_bytes -= self._held.popleft()[1]
        self._bound_reading()

    def _bound_reading(self) -> None:
        if self._held_bytes <= self._most_held_bytes:
            self.may_read.set()
        else:
            self.may_read.clear()
