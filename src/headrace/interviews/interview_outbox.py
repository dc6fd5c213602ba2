"""The events of interviews in this process, on their way to the journal.

Covers: gathering rows into batches and compressing them. Does not cover: numbers, acknowledgements and the bytes that
wait for the disk (outbox), or conducting interviews (interviews.inline).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile

from headrace.exit_causes import ExitCause
from headrace.interviews.contract import Answers, Chunk, ChunkEnded, InterviewEvent, Observed, Rows
from headrace.models.limiter import EndpointState
from headrace.outbox import Outbox
from headrace.store.run_file.rows import Row, row_batch
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
        """Remove and return the first rows that together stay below the size of one event, with their bytes."""
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


class InterviewOutbox(Outbox[InterviewEvent]):
    """Bounded by the window: every row, answer and ended chunk in it belongs to an interview that holds a permit.

    A batch costs about a millisecond, however few rows it has. So rows are gathered for a moment, and no longer than
    until `enough_rows` hold permits that others could have: a slow service's answers come one by one.

    Rows are compressed when they are read, not when they come: compressing gives up Python's lock, and while the last
    batch is being committed the journal's thread would take it every time. Large ones at once: they are in a buffer
    that the next one is written into, and a batch of them would be large.
    """

    def __init__(self) -> None:
        super().__init__()
        self.compress: Callable[[bytes | bytearray], bytes] = bytes
        self.enough_rows = 1
        self._rows: dict[int, _ChunkRows] = {}
        self._answers: dict[int, tuple[Chunk, list[AnswerRecord]]] = {}
        self._unacknowledged: dict[int, int] = {}  # the latest event with answers of each interview, in their order
        self._ended: list[tuple[Chunk, ExitCause]] = []
        self._states: dict[int, list[tuple[EndpointState, str]]] = {}
        self._enough = asyncio.Event()
        self._waiting_rows = 0

    def add_answer(self, chunk: Chunk, ordinal: int, record: AnswerRecord) -> None:
        self._answers.setdefault(ordinal, (chunk, []))[1].append(record)
        self._ready.set()

    def is_journaled(self, ordinal: int) -> bool:
        """Whether all answers that this interview has so far are on disk."""
        return ordinal not in self._answers and ordinal not in self._unacknowledged

    def ack(self, upto: int) -> None:
        super().ack(upto)
        on_disk = takewhile(lambda each: each[1] <= upto, self._unacknowledged.items())
        for ordinal, _ in list(on_disk):
            del self._unacknowledged[ordinal]

    def add_row(self, chunk: Chunk, row: Row) -> None:
        # An interview that ends before the writer reached its answers never touches the pending table.
        self._answers.pop(row.ordinal, None)
        waiting = self._rows.get(chunk.id)
        if waiting is None:
            waiting = self._rows[chunk.id] = _ChunkRows(chunk)
        if type(row.detail) is bytearray:
            row.detail, row.is_packed = self.compress(row.detail), True
        size_bytes = row.held_bytes()
        waiting.rows.append(row)
        waiting.held_bytes += size_bytes
        self.count_bytes(size_bytes)
        self._waiting_rows += 1
        self._ready.set()
        if self._waiting_rows >= self.enough_rows or self.is_full:
            self._enough.set()

    def end_chunk(self, chunk: Chunk, cause: ExitCause) -> None:
        self._ended.append((chunk, cause))
        self._ready.set()

    def observe(self, model: int, state: EndpointState, reason: str) -> None:
        """Only the latest state matters, and whether it was closed before: what was in flight then is left."""
        held = self._states.setdefault(model, [])
        if held and held[-1][0] is not EndpointState.CLOSED:
            held.pop()
        self._states[model] = [*held[-1:], (state, reason)]
        self._ready.set()

    def fail(self, error: BaseException) -> None:
        super().fail(error)
        self._enough.set()

    async def _gather(self) -> None:
        if self.enough_rows > 1 and not self._enough.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_GATHER_S):
                    await self._enough.wait()
        self._enough.clear()

    def _collect(self) -> None:
        """Rows and answers first, then the ends of chunks, so that nothing follows the end of its chunk."""
        self._collect_states()
        self._collect_rows()
        self._collect_answers()
        if self._rows or self._answers:
            self._ready.set()  # more than fits: the rest is the next batch
            self._enough.set()
        unread = {*self._rows, *(chunk.id for chunk, _ in self._answers.values())}
        for chunk, cause in self._ended:
            if chunk.id not in unread:
                self.add(ChunkEnded(id=chunk.id, epoch=chunk.epoch, seq=0, cause=cause))
        self._ended = [ended for ended in self._ended if ended[0].id in unread]

    def _collect_rows(self) -> None:
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
                if not row.is_packed:
                    row.detail = self.compress(row.detail) if row.detail else b""
            self.add(Rows(id=chunk.id, epoch=chunk.epoch, seq=0, rows=row_batch(rows)))
            self.free_with_last(held_bytes)

    def _collect_states(self) -> None:
        for model, states in self._states.items():
            for state, reason in states:
                self.add(Observed(id=0, epoch=0, seq=0, model=model, state=state, reason=reason))
        self._states.clear()

    def _collect_answers(self) -> None:
        taken_bytes = 0
        while self._answers and taken_bytes < _MOST_BATCH_BYTES:
            ordinal = next(iter(self._answers))
            chunk, records = self._answers.pop(ordinal)
            taken_bytes += sum([record.held_bytes() for record in records])
            answers = [(ordinal, record) for record in records]
            self._unacknowledged.pop(ordinal, None)  # its new place is the last
            self._unacknowledged[ordinal] = self.add(Answers(id=chunk.id, epoch=chunk.epoch, seq=0, answers=answers))
