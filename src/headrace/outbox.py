"""An executor's events on their way to the journal: numbered in order, kept until they are read, counted until they are
acknowledged.

    add(event) ──► waiting ── batches() ──► the controller commits ── ack(upto) ──► the sources of these events hear it

Three kinds use it: interviews in this process (interviews.interview_outbox), agent runs (agents.agent_outbox), and an
executor that merges the events of its workers. That one acknowledges each event to the worker it came from.

Covers: numbers, batches, acknowledgements, and how many bytes wait for the disk. Does not cover: what events mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, Protocol

from headrace.executor import Batch, SomeEvent


class EventSource(Protocol):
    """Where an event came from, with a number of its own: it hears up to which of its events are on disk."""

    def acknowledge(self, upto: int) -> None: ...


class Outbox(Generic[SomeEvent]):
    """`has_room` is set while no more bytes are held than `bound` allows: those who make events wait for it."""

    def __init__(self) -> None:
        self.last_seq = 0
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._waiting: list[SomeEvent] = []
        self._sources: deque[tuple[int, EventSource, int]] = deque()  # our seq, the source, its own seq
        self._held: deque[tuple[int, int]] = deque()  # seq, and the bytes that are free once it is on disk
        self._held_bytes = self._most_bytes = 0
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None

    @property
    def is_full(self) -> bool:
        return self._held_bytes > self._most_bytes

    def bound(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._note_room()

    def add(self, event: SomeEvent) -> int:
        """Number the event and keep it until it is read. Returns its number."""
        self.last_seq += 1
        event.seq = self.last_seq
        self._waiting.append(event)
        self._ready.set()
        return self.last_seq

    def add_from(self, source: EventSource, event: SomeEvent) -> int:
        """The same for an event that has its source's number, which is acknowledged with ours."""
        source_seq = event.seq
        seq = self.add(event)
        self.acknowledge_with_last(source, source_seq)
        return seq

    def acknowledge_with_last(self, source: EventSource, source_seq: int) -> None:
        """Have `source_seq` acknowledged together with the event that was added last."""
        self._sources.append((self.last_seq, source, source_seq))

    async def committed(self, event: SomeEvent) -> None:
        """Add the event, and return when it is on disk."""
        waiter = _Waiter()
        self._sources.append((self.add(event), waiter, 0))
        await waiter.on_disk

    def count_bytes(self, size_bytes: int) -> None:
        """So many more bytes are held; `free_with_last` defines until when."""
        self._held_bytes += size_bytes
        if self._held_bytes > self._most_bytes:
            self.has_room.clear()

    def free_with_last(self, size_bytes: int) -> None:
        """So many bytes are free once the event that was added last is on disk."""
        self._held.append((self.last_seq, size_bytes))

    def fail(self, error: BaseException) -> None:
        """Have an error of the executor itself raised where the events are read."""
        self._failure = error
        self._ready.set()

    def ack(self, upto: int) -> None:
        """Events up to this number are on disk: acknowledge them to their sources, each once, and free their bytes."""
        acknowledged: dict[EventSource, int] = {}
        while self._sources and self._sources[0][0] <= upto:
            _, source, source_seq = self._sources.popleft()
            acknowledged[source] = source_seq
        for source, source_seq in acknowledged.items():
            source.acknowledge(source_seq)
        while self._held and self._held[0][0] <= upto:
            self._held_bytes -= self._held.popleft()[1]
        self._note_room()

    def take_waiting(self) -> list[SomeEvent]:
        """What waits now, in order, for a reader that cannot wait for its next batch."""
        self._collect()
        events, self._waiting = self._waiting, []
        return events

    async def batches(self) -> AsyncIterator[Batch[SomeEvent]]:
        """Everything that waits, in order, again and again."""
        while True:
            await self._ready.wait()
            await self._gather()
            self._ready.clear()
            if self._failure is not None:
                raise self._failure
            if events := self.take_waiting():
                yield Batch(events[-1].seq, events)

    async def _gather(self) -> None:
        """Wait until a batch is worth its cost. For subclasses whose events come one by one."""

    def _collect(self) -> None:
        """Make the events of the next batch. For subclasses whose events are made when they are read."""

    def _note_room(self) -> None:
        if self.is_full:
            self.has_room.clear()
        else:
            self.has_room.set()


class _Waiter:
    """A coroutine that waits for one event to be on disk, as the event's source."""

    def __init__(self) -> None:
        self.on_disk: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def acknowledge(self, upto: int) -> None:
        if not self.on_disk.done():
            self.on_disk.set_result(None)
