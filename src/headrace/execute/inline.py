"""Runs interviews in this process, on this event loop. Covers: the executor contract for chunks of interviews.

A fixed number of workers take interviews from a queue; one that must wait for a busy model gives its worker back and
returns to the queue later. Does not cover: hard memory limits, which need processes of their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from headrace.errors import HeadraceError
from headrace.execute.contract import (
    Answers,
    AnyEvent,
    Batch,
    Chunk,
    Ended,
    Interview,
    Lease,
    Outcome,
    Rows,
    Signal,
    Spec,
    Work,
)  # fmt: skip
from headrace.execute.interview import Interviewer, Respondent
from headrace.providers.contract import Provider
from headrace.providers.services import provider_for
from headrace.store.rows import DetailPacker, Row
from headrace.survey.models import Model
from headrace.survey.prompts import persona
from headrace.survey.record import AnswerRecord, Cause
from headrace.survey.survey import Survey
from headrace.survey.values import Fields, decode_fields

MOST_ROWS_PER_BATCH = 1000
# How many interviews of a model that never waits run before the loop gets a turn.
_TURN = 16


class _ChunkInProgress:
    """A chunk, its decoded rows, and what of it is not reported yet."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.left = len(chunk.interviews)
        self.signal: Signal | None = None
        self.rows: list[Row] = []
        self._agents: dict[int, tuple[Fields, str]] = {}
        self._scenarios: dict[int, Fields] = {}

    def agent(self, position: int) -> tuple[Fields, str]:
        """An agent's fields and its persona; shared by the interviews of the chunk."""
        if position not in self._agents:
            fields = decode_fields(self.chunk.agents[position])
            self._agents[position] = fields, persona(fields)
        return self._agents[position]

    def scenario(self, position: int) -> Fields:
        if position not in self._scenarios:
            self._scenarios[position] = decode_fields(self.chunk.scenarios[position])
        return self._scenarios[position]

    def is_stopped(self) -> bool:
        return self.signal is Signal.PREEMPT


class InlineExecutor:
    """`functions` are, for each model, its parameters that are functions: they do not travel in a spec."""

    def __init__(self, functions: list[dict[str, Any]]) -> None:
        self._functions = functions
        self._providers: list[Provider] = []
        self._interviewer: Interviewer | None = None
        self._queue: asyncio.Queue[tuple[_ChunkInProgress, Interview | Respondent]] = asyncio.Queue()
        self._workers: set[asyncio.Task[None]] = set()
        self._idle = 0
        self._later: dict[asyncio.TimerHandle, _ChunkInProgress] = {}
        self._conducting: dict[asyncio.Task[None], _ChunkInProgress] = {}
        self._chunks: dict[int, _ChunkInProgress] = {}
        self._answers: dict[int, tuple[Chunk, list[AnswerRecord]]] = {}
        self._ended: list[tuple[Chunk, Outcome]] = []
        self._ready = asyncio.Event()
        self._room = asyncio.Event()
        self._seq = 0
        self._lease = Lease(interviews=1, buffer_bytes=1_000_000)
        self._buffered_bytes = 0
        self._unacked: deque[tuple[int, int]] = deque()  # (seq, bytes), bounded by the window
        self._failure: BaseException | None = None

    async def open(self, spec: Spec) -> None:
        models = [Model.from_row(row, functions) for row, functions in zip(spec.models, self._functions, strict=True)]
        self._providers = [provider_for(model) for model in models]
        packer = DetailPacker(spec.dictionary)
        self._interviewer = Interviewer(Survey.from_row(spec.survey), self._providers, packer, spec.retry)

    def lease(self, lease: Lease) -> None:
        self._lease = lease
        self._make_room()

    async def start(self, work: Work) -> None:
        if not isinstance(work, Chunk):
            raise HeadraceError("This executor runs chunks of interviews only.")
        begun = self._chunks[work.id] = _ChunkInProgress(work)
        for interview in work.interviews:
            self._queue.put_nowait((begun, interview))
        self._staff()

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        begun = self._chunks.get(id)
        if begun is None or begun.chunk.epoch != epoch:
            return
        begun.signal = what
        for handle in [handle for handle, waiting in self._later.items() if waiting is begun]:
            handle.cancel()
            del self._later[handle]
            self._count_down(begun)
        if what is Signal.KILL:
            doomed = [worker for worker, conducted in self._conducting.items() if conducted is begun]
            for worker in doomed:
                worker.cancel()
            await asyncio.wait_for(asyncio.gather(*doomed, return_exceptions=True), deadline_s)
            self._staff()

    async def events(self) -> AsyncIterator[Batch]:
        while True:
            await self._ready.wait()
            self._ready.clear()
            if self._failure is not None:
                raise self._failure
            if batch := self._collect():
                yield batch

    def ack(self, upto: int) -> None:
        while self._unacked and self._unacked[0][0] <= upto:
            self._buffered_bytes -= self._unacked.popleft()[1]
        self._make_room()

    async def close(self) -> None:
        for handle in self._later:
            handle.cancel()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for provider in self._providers:
            await provider.close()

    @property
    def _opened(self) -> Interviewer:
        if self._interviewer is None:
            raise HeadraceError("The executor was not opened.")
        return self._interviewer

    def _staff(self) -> None:
        """Have a worker for every interview that waits, within the lease."""
        # A model that never waits keeps one worker busy and gains nothing from others.
        most = 1 if self._opened.is_instant else self._lease.interviews
        for _ in range(min(most - len(self._workers), self._queue.qsize() - self._idle)):
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._worker_ended)

    async def _work(self) -> None:
        worker, turn = asyncio.current_task(), 0
        assert worker is not None
        while True:
            self._idle += 1
            try:
                begun, task = await self._queue.get()
            finally:
                self._idle -= 1
            while self._buffered_bytes > self._lease.buffer_bytes:
                await self._room.wait()
            await self._conduct(begun, task, worker)
            del begun, task  # an idle worker must not keep its last interview alive
            turn += 1
            if turn % _TURN == 0:
                await asyncio.sleep(0)

    async def _conduct(self, begun: _ChunkInProgress, task: Interview | Respondent, worker: asyncio.Task[None]) -> None:
        if begun.signal is not None:
            return self._count_down(begun)
        respondent = self._begin(begun, task) if isinstance(task, Interview) else task
        self._conducting[worker] = begun
        try:
            row = await self._row_of(begun, respondent)
        except asyncio.CancelledError:
            self._count_down(begun)
            raise
        finally:
            del self._conducting[worker]
        if row is not None:
            self._seal(begun, row)
        elif respondent.resume_after_s is not None and begun.signal is None:
            self._put_back(begun, respondent, respondent.resume_after_s)
        else:
            self._count_down(begun)
        return None

    def _begin(self, begun: _ChunkInProgress, interview: Interview) -> Respondent:
        fields, system = begun.agent(interview.agent)
        return self._opened.begin(interview, fields, begun.scenario(interview.scenario), system)

    async def _row_of(self, begun: _ChunkInProgress, respondent: Respondent) -> Row | None:
        interviewer, on_answer = self._opened, None
        if not self._providers[respondent.interview.model].is_instant:
            on_answer = self._answer_taker(begun.chunk)
        try:
            return await interviewer.conduct(respondent, on_answer, begun.is_stopped)
        except MemoryError:
            return interviewer.failed(respondent, Cause.OUT_OF_MEMORY, "the process ran out of memory")
        except Exception as error:  # noqa: BLE001 - whatever one interview meets is recorded with it; the others go on
            return interviewer.failed(respondent, Cause.INTERNAL, f"{type(error).__name__}: {error}")

    def _answer_taker(self, chunk: Chunk) -> Any:
        def take(ordinal: int, record: AnswerRecord) -> None:
            self._answers.setdefault(ordinal, (chunk, []))[1].append(record)
            self._ready.set()

        return take

    def _seal(self, begun: _ChunkInProgress, row: Row) -> None:
        # An interview that ends before the writer reached its answers never touches the pending table.
        self._answers.pop(row.ordinal, None)
        begun.rows.append(row)
        self._buffered_bytes += len(row.detail)
        self._count_down(begun)

    def _count_down(self, begun: _ChunkInProgress) -> None:
        begun.left -= 1
        self._ready.set()
        if begun.left == 0:
            lost = Outcome.LOST if begun.signal is Signal.KILL else Outcome.PREEMPTED
            self._ended.append((begun.chunk, Outcome.DONE if begun.signal is None else lost))

    def _put_back(self, begun: _ChunkInProgress, task: Respondent, wait_s: float) -> None:
        def requeue() -> None:
            del self._later[handle]
            self._queue.put_nowait((begun, task))

        handle = asyncio.get_running_loop().call_later(wait_s, requeue)
        self._later[handle] = begun

    def _collect(self) -> Batch | None:
        """Everything that waits, up to the batch's size; what is left over makes the next batch."""
        events: list[AnyEvent] = []
        for begun in list(self._chunks.values()):
            if begun.rows and len(events) < MOST_ROWS_PER_BATCH:
                rows, begun.rows = begun.rows, []
                events.append(Rows(id=begun.chunk.id, epoch=begun.chunk.epoch, seq=self._next_seq(), rows=rows))
                self._unacked.append((self._seq, sum(len(row.detail) for row in rows)))
        for ordinal, (chunk, records) in self._answers.items():
            answers = [(ordinal, record) for record in records]
            events.append(Answers(id=chunk.id, epoch=chunk.epoch, seq=self._next_seq(), answers=answers))
        self._answers.clear()
        for chunk, outcome in self._ended:
            events.append(Ended(id=chunk.id, epoch=chunk.epoch, seq=self._next_seq(), outcome=outcome))
            self._chunks.pop(chunk.id, None)
        self._ended.clear()
        return Batch(self._seq, events) if events else None

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _make_room(self) -> None:
        if self._buffered_bytes <= self._lease.buffer_bytes:
            self._room.set()
            self._room.clear()

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._failure = error
            self._ready.set()
