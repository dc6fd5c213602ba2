"""What an executor in this process has to tell: kept until it is read, and counted until it is acknowledged.

Covers: gathering events into batches, compressing them, and how many bytes wait for the disk.
Does not cover: making them (interviews.inline).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from headrace.executor import Batch
from headrace.exit_causes import ExitCause
from headrace.interviews.contract import Answers, Chunk, ChunkEnded, InterviewEvent, Observed, Rows
from headrace.models.limiter import EndpointState
from headrace.store.run_file.row_batches import row_batch
from headrace.store.run_file.rows import Row
from headrace.survey.record import AnswerRecord

_MOST_ROWS_PER_BATCH = 1000
_GATHER_S = 0.02
_MOST_ROWS_BYTES = 4_000_000
_MOST_BATCH_BYTES = 2_000_000  # before what goes beyond it, which is one event of rows or one interview's answers


class _ChunkRows:
    """The rows of one chunk that wait to be read."""

    __slots__ = ("chunk", "held_bytes", "rows")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.rows: list[Row] = []
        self.held_bytes = 0

    def take(self) -> tuple[list[Row], int]:
        """The first of them, as many as are of a bearable size together, with their bytes."""
        if self.held_bytes <= _MOST_ROWS_BYTES:
            taken, taken_bytes = self.rows, self.held_bytes
            self.rows, self.held_bytes = [], 0
            return taken, taken_bytes
        count = taken_bytes = 0
        for row in self.rows:
            row_bytes = row.held_bytes()
            if count and taken_bytes + row_bytes > _MOST_ROWS_BYTES:
                break
            count += 1
            taken_bytes += row_bytes
        taken, self.rows = self.rows[:count], self.rows[count:]
        self.held_bytes -= taken_bytes
        return taken, taken_bytes


class Outbox:
    """Bounded by the window: every row, answer and ending in it belongs to an interview that holds a place.

    A batch costs about a millisecond, however few rows it has. So rows are gathered for a moment, and no longer than
    until `enough_rows` hold places that others could have: a slow service's answers come one by one.

    Rows are compressed when they are read, not when they come: compressing gives up Python's lock, and while the last
    batch is being committed the journal's thread would take it every time.
    """

    def __init__(self) -> None:
        self._rows: dict[int, _ChunkRows] = {}
        self._answers: dict[int, tuple[Chunk, list[AnswerRecord]]] = {}
        self._endings: list[tuple[Chunk, ExitCause]] = []
        self._standings: dict[int, tuple[EndpointState, str]] = {}
        self._unacked: deque[tuple[int, int]] = deque()  # (seq, bytes)
        self._seq = 0
        self._ready = asyncio.Event()
        self._enough = asyncio.Event()
        self._enough_rows = 1
        self._waiting_rows = 0
        self._room = asyncio.Event()
        self._failure: BaseException | None = None
        self._most_bytes = 0
        self._held_bytes = 0

    @property
    def is_full(self) -> bool:
        return self._held_bytes > self._most_bytes

    def bound(self, most_bytes: int, enough_rows: int) -> None:
        self._most_bytes = most_bytes
        self._enough_rows = enough_rows
        self._tell_room()

    async def wait_for_room(self) -> None:
        while self.is_full:
            await self._room.wait()

    def answer(self, chunk: Chunk, ordinal: int, record: AnswerRecord) -> None:
        self._answers.setdefault(ordinal, (chunk, []))[1].append(record)
        self._ready.set()

    def row(self, chunk: Chunk, row: Row) -> None:
        # An interview that ends before the writer reached its answers never touches the pending table.
        self._answers.pop(row.ordinal, None)
        waiting = self._rows.get(chunk.id)
        if waiting is None:
            waiting = self._rows[chunk.id] = _ChunkRows(chunk)
        size_bytes = row.held_bytes()
        waiting.rows.append(row)
        waiting.held_bytes += size_bytes
        self._held_bytes += size_bytes
        self._waiting_rows += 1
        self._ready.set()
        if self._waiting_rows >= self._enough_rows or self.is_full:
            self._enough.set()

    def ending(self, chunk: Chunk, cause: ExitCause) -> None:
        self._endings.append((chunk, cause))
        self._ready.set()

    def observed(self, model: int, standing: EndpointState, reason: str) -> None:
        self._standings[model] = standing, reason  # only the latest matters
        self._ready.set()

    def fail(self, error: BaseException) -> None:
        """Hand an error of the executor itself to whoever reads the events."""
        self._failure = error
        self._ready.set()
        self._enough.set()

    async def batches(self, compress: Callable[[bytes], bytes]) -> AsyncIterator[Batch[InterviewEvent]]:
        while True:
            await self._ready.wait()
            await self._gather()
            self._ready.clear()
            if self._failure is not None:
                raise self._failure
            if batch := self._collect(compress):
                yield batch

    def ack(self, upto: int) -> None:
        while self._unacked and self._unacked[0][0] <= upto:
            self._held_bytes -= self._unacked.popleft()[1]
        self._tell_room()

    async def _gather(self) -> None:
        if self._enough_rows > 1 and not self._enough.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_GATHER_S):
                    await self._enough.wait()
        self._enough.clear()

    def _collect(self, compress: Callable[[bytes], bytes]) -> Batch[InterviewEvent] | None:
        """What waits, in order: rows and answers, then the endings, so that nothing follows its work's ending."""
        events: list[InterviewEvent] = [*self._take_standings(), *self._take_rows(compress), *self._take_answers()]
        if self._rows or self._answers:
            self._ready.set()  # more than fits: the rest is the next batch
            self._enough.set()
        unread = {*self._rows, *(chunk.id for chunk, _ in self._answers.values())}
        waiting = [ending for ending in self._endings if ending[0].id in unread]
        for chunk, cause in self._endings:
            if chunk.id not in unread:
                events.append(ChunkEnded(id=chunk.id, epoch=chunk.epoch, seq=self._next_seq(), cause=cause))
        self._endings = waiting
        return Batch(self._seq, events) if events else None

    def _take_rows(self, compress: Callable[[bytes], bytes]) -> list[InterviewEvent]:
        events: list[InterviewEvent] = []
        taken = taken_bytes = 0
        while self._rows and taken < _MOST_ROWS_PER_BATCH and taken_bytes < _MOST_BATCH_BYTES:
            waiting = next(iter(self._rows.values()))
            chunk = waiting.chunk
            rows, held_bytes = waiting.take()
            if not waiting.rows:
                del self._rows[chunk.id]
            taken += len(rows)
            taken_bytes += held_bytes
            self._waiting_rows -= len(rows)
            for row in rows:
                row.detail = compress(row.detail)
            events.append(Rows(id=chunk.id, epoch=chunk.epoch, seq=self._next_seq(), rows=row_batch(rows)))
            self._unacked.append((self._seq, held_bytes))
        return events

    def _take_standings(self) -> list[InterviewEvent]:
        events: list[InterviewEvent] = [
            Observed(id=0, epoch=0, seq=self._next_seq(), model=model, standing=standing, reason=reason)
            for model, (standing, reason) in self._standings.items()
        ]
        self._standings.clear()
        return events

    def _take_answers(self) -> list[InterviewEvent]:
        events: list[InterviewEvent] = []
        taken_bytes = 0
        while self._answers and taken_bytes < _MOST_BATCH_BYTES:
            ordinal = next(iter(self._answers))
            chunk, records = self._answers.pop(ordinal)
            taken_bytes += sum([record.held_bytes() for record in records])
            answers = [(ordinal, record) for record in records]
            events.append(Answers(id=chunk.id, epoch=chunk.epoch, seq=self._next_seq(), answers=answers))
        return events

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _tell_room(self) -> None:
        if not self.is_full:
            self._room.set()
            self._room.clear()
