"""One run of a survey: the loop that admits interviews, journals what comes back and gives places free again.

Covers: feeding the executor, group commit, memory readings, stopping. Runs on the engine's thread.
Does not cover: deciding (schedule), conducting interviews (execute), or the caller's side (interviews.api).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from headrace.display import counted
from headrace.errors import HeadraceError, InterviewFailed, RunFileGone
from headrace.executor import Batch, Signal
from headrace.interviews.admission import Admission
from headrace.interviews.contract import (
    Answers,
    Chunk,
    ChunkEnded,
    Interview,
    InterviewEvent,
    InterviewExecutor,
    Lease,
    Observed,
    Rows,
    Spec,
    Spent,
)
from headrace.interviews.cursors import Cursors
from headrace.interviews.endpoint_states import EndpointStates
from headrace.interviews.spending import Spending
from headrace.interviews.window import Window
from headrace.limits import RetryLimits, RunOptions
from headrace.memory.governed import GovernedMemory
from headrace.models.limiter import EndpointState
from headrace.plan.job import Job
from headrace.plan.portion import Portion
from headrace.plan.prices import price_of
from headrace.progress.pace import Progress
from headrace.store.disk_errors import translated_errors
from headrace.store.run_file.row_batches import BatchRow, RowBatch
from headrace.store.run_file.run_file import RunFile
from headrace.store.writer_thread import WriterThread

_READING_EVERY_S = 0.1
_log = logging.getLogger("headrace")
_READING_AT_MOST_EVERY_S = 0.003
_KILL_WITHIN_S = 5.0


class CommittedRow(NamedTuple):
    """A committed interview on its way to whoever listens, with the rows it was about."""

    row: BatchRow
    agent: bytes
    scenario: bytes


Listener: TypeAlias = Callable[[list[CommittedRow]], None]


@dataclass(slots=True)
class _InFlight:
    chunk: Chunk
    left: int


class SurveyRun:
    """`listener` gets sealed interviews and must answer each batch with `delivered`; until then they hold places."""

    def __init__(
        self,
        job: Job,
        file: RunFile,
        options: RunOptions,
        memory: GovernedMemory,
        executor: InterviewExecutor,
        listener: Listener | None,
    ) -> None:
        self._memory = memory
        self._job = job
        self._file = file
        self._options = options
        self._executor = executor
        self._listener = listener
        self.portion = Portion(len(file.plan), limit=options.limit, sample=options.sample, seed=options.seed)
        self.total = self.portion.total
        self._cursors = Cursors(file.plan, self.portion.passed_over(file.done), self.portion.stop)
        self._window = Window(memory.limits, file.budgets.window)
        self._admission = Admission(self._cursors, self._window)
        self._changed = asyncio.Event()
        self._chunks: dict[int, _InFlight] = {}  # bounded by the window
        self._ahead = 0  # interviews that wait in the executor, beside those in flight
        self._next_id = 0
        self._stops = 0
        self._background: set[asyncio.Future[None]] = set()  # the loop itself would not keep them alive
        self._writer: WriterThread | None = None
        self._is_abandoned = False
        self._undelivered = 0
        self._seen_seq = 0
        self._failed = 0
        self._sealed = 0
        self._spending = Spending(job, file.budgets, *file.usage_before())
        self._endpoint_states = EndpointStates(job.models)
        self._admission.afford(self._spending.affordable())
        self._failure: HeadraceError | None = None
        self._undone = ""  # why the executor has left interviews as they are
        self._memory.read(time.monotonic())
        self._sealed_since_reading = 0
        self._read_at_s = 0.0
        self.reused = self.portion.count(file.done)

    @property
    def was_stopped(self) -> bool:
        return self._stops > 0

    def why_incomplete(self) -> HeadraceError:
        """The error of a run that has ended by itself before its plan has."""
        done = self.reused + self._sealed
        if self._admission.is_spent:
            return self._spending.spent(done, self.total)
        if (unusable := self._endpoint_states.failure(done, self.total)) is not None:
            return unusable
        if self._undone:
            return HeadraceError(
                f"{self.total - done:,} of {self.total:,} interviews are left: {self._undone}.",
                fix="Find out what ends workers, then run again: everything journaled is safe.",
            )
        if self._spending.is_limited:  # of interviews that a dead worker had, too
            return self._spending.spent(done, self.total)
        return HeadraceError(
            f"The run ended with {done:,} of {counted(self.total, 'interview')}.",
            fix="This is a fault of Headrace: please report it. Everything journaled is safe.",
        )

    @property
    def concurrency(self) -> int:
        return self._window.concurrency - self._ahead

    @property
    def in_flight(self) -> int:
        return self._admission.in_flight

    @property
    def interview_bytes(self) -> int:
        """What one interview in flight is expected to hold."""
        return self._window.interview_bytes

    @property
    def peak_bytes(self) -> int:
        return self._memory.peak_bytes

    async def run(self, on_progress: Callable[[Progress], None] | None) -> None:
        """Until everything is sealed, or stopped, or failed; what is journaled by then stays."""
        self.read_memory()
        with closing(WriterThread(self._file.live)) as self._writer:
            await self._executor.open(self._spec())
            self._ahead = self._executor.ahead
            self._window.tune(self._window.concurrency + self._ahead)
            self._lease()
            tasks = {
                asyncio.create_task(self._feed()),
                asyncio.create_task(self._journal(self._writer)),
                asyncio.create_task(self._watch(on_progress)),
            }
            try:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._executor.close()
        self._writer = None
        if self._failure is not None:
            raise self._failure

    def request_stop(self) -> None:
        """The caller's wish. Once: admit nothing more and let what runs end. Twice: stop now; what is journaled stays.

        Whoever listened is gone: what waits to be delivered gives its places free.
        """
        self._listener = None
        self.delivered(self._undelivered)
        self.stop()

    def stop(self) -> None:
        """The same asked for from outside: whoever listens is still there and gets what is sealed."""
        self._stops += 1
        self._stop(Signal.CANCEL if self._stops == 1 else Signal.KILL)

    def pause(self) -> None:
        """Admit nothing more, let what runs end, and wait."""
        self._admission.pause()

    def resume(self) -> None:
        self._admission.resume()
        self._changed.set()

    def tune(self, concurrency: int) -> None:
        """Let so many interviews be in flight; the executor hears of it with the next lease."""
        self._window.tune(concurrency + self._ahead)
        self._changed.set()

    def keep_concurrency(self, concurrency: int) -> None:
        """The user's wish: tune, and have the file keep it for later runs."""
        self.tune(concurrency)
        self._do_beside(self._write_concurrency(concurrency))

    async def _write_concurrency(self, concurrency: int) -> None:
        try:
            with translated_errors(self._file.path):
                if self._writer is None:
                    self._file.keep_concurrency(concurrency)
                else:  # the journal's thread has the connection
                    await self._writer.call(self._file.keep_concurrency, concurrency)
        except HeadraceError as error:
            self._failure = self._failure or error
            self._stop(Signal.CANCEL)

    def _do_beside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _stop(self, what: Signal) -> None:
        self._admission.stop()
        self._changed.set()
        self._do_beside(self._signal_all(what))

    async def _signal_all(self, what: Signal) -> None:
        flights = list(self._chunks.values())
        signals = (self._executor.signal(f.chunk.id, f.chunk.epoch, what, _KILL_WITHIN_S) for f in flights)
        if any(await asyncio.gather(*signals, return_exceptions=True)):
            self._is_abandoned = True  # something in flight would not even be killed: end without it
            self._changed.set()

    def delivered(self, count: int) -> None:
        """The listener is done with so many sealed interviews."""
        count = min(count, self._undelivered)
        self._undelivered -= count
        self._release(count)

    def _release(self, count: int) -> None:
        self._admission.release(count)
        self._changed.set()

    def progress(self) -> Progress:
        spent = self._spending.run
        return Progress(
            done=self.reused + self._sealed,
            total=self.total,
            reused=self.reused,
            failed=self._failed,
            in_flight=self._admission.in_flight,
            memory_bytes=self._memory.used_bytes,
            budget_bytes=self._memory.budget_bytes,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cost=None if spent.unpriced else spent.cost,
            is_paused=self._admission.is_paused,
            notice=self._endpoint_states.notice(),
        )

    def _spec(self) -> Spec:
        return Spec(
            survey=self._job.survey.to_row(),
            models=[model.to_row() for model in self._job.models],
            prices=[price_of(model) for model in self._job.models],
            dictionary=self._file.dictionary,
            retry=RetryLimits(),
        )

    async def _feed(self) -> None:
        while not self._admission.finished and not self._is_abandoned:
            ordinals = self._admission.next_chunk()
            if ordinals:
                with translated_errors(self._file.path):
                    chunk = self._chunk(ordinals)
                await self._executor.start(chunk)
            elif not self._admission.finished:
                self._changed.clear()
                await self._changed.wait()

    def _chunk(self, ordinals: list[int]) -> Chunk:
        interviews = [self._interview(ordinal) for ordinal in ordinals]
        self._next_id += 1
        chunk = Chunk(
            id=self._next_id,
            epoch=1,
            interviews=interviews,
            agents=self._file.rows("agents", [interview.agent for interview in interviews]),
            scenarios=self._file.rows("scenarios", [interview.scenario for interview in interviews]),
        )
        self._chunks[chunk.id] = _InFlight(chunk, len(interviews))
        return chunk

    def _interview(self, ordinal: int) -> Interview:
        interview = Interview(ordinal, *self._file.plan.cell(ordinal))
        if self._file.has_answers(ordinal):
            interview.kept, interview.uncounted = self._file.answers_kept(ordinal)
        return interview

    async def _journal(self, writer: WriterThread) -> None:
        """Group commit without a timer: whatever came while the last COMMIT ran makes the next batch."""
        async for batch in self._executor.events():
            events = self._new_events(batch)
            row_batches = [event.rows for event in events if isinstance(event, Rows)]
            answers = [answer for event in events if isinstance(event, Answers) for answer in event.answers]
            if answers:
                self._window.answered(max(record.held_bytes() for _, record in answers))
            spent = [event for event in events if isinstance(event, Spent)]
            if row_batches or answers or spent:
                lost = [event.usage for event in spent]
                await writer.call(self._file.journal.commit, row_batches, answers, lost)
            if spent:
                self._note_lost(spent)
            self._executor.ack(batch.upto)
            if row_batches:
                count = sum(map(len, row_batches))
                self._note_rows(row_batches, count)
                self._hand_on(events, count)
            self._end_chunks(events)
            self._note_endpoint_states(batch)

    def _note_lost(self, spent: list[Spent]) -> None:
        """Before the acknowledgement, with which lost interviews are conducted again: as far as the budget allows."""
        for event in spent:
            self._spending.add_lost(event.usage, event.unanswered)
        self._admission.afford(self._spending.affordable())
        self._lease()

    def _note_endpoint_states(self, batch: Batch[InterviewEvent]) -> None:
        """A model that cannot be asked stops its own cursor; the others go on."""
        for event in batch.events:
            if isinstance(event, Observed):
                self._endpoint_states.note(event)
                match event.standing:
                    case EndpointState.OPEN:
                        self._cursors.let_go(event.model)
                    case EndpointState.HELD:
                        self._cursors.hold(event.model)
                    case EndpointState.CLOSED:
                        self._cursors.drop(event.model)
                self._changed.set()

    def _new_events(self, batch: Batch[InterviewEvent]) -> list[InterviewEvent]:
        """What is new in a batch; what came before, or comes from work that was replaced or has ended, is refused."""
        events = [event for event in batch.events if event.seq > self._seen_seq and self._is_in_flight(event)]
        self._seen_seq = max(self._seen_seq, batch.upto)
        return events

    def _is_in_flight(self, event: InterviewEvent) -> bool:
        flight = self._chunks.get(event.id)
        return flight is not None and flight.chunk.epoch == event.epoch

    def _note_rows(self, row_batches: list[RowBatch], count: int) -> None:
        self._sealed += count
        for rows in row_batches:
            self._spending.add(rows.usage, len(rows))
            self._failed += rows.failed
            for ordinal in rows.ordinals:
                self._file.done.add(ordinal)
            if rows.failures and self._options.stop_on_exception and self._failure is None:
                self._stop_at(rows)
        self._admission.afford(self._spending.affordable())
        self._window.ended(max(rows.largest_bytes for rows in row_batches))
        self._read_memory_early(count)

    def _stop_at(self, rows: RowBatch) -> None:
        """At the first failure."""
        ordinal, position, cause, message = rows.failures[0]
        question = self._job.survey.questions[position].question_name
        self._failure = InterviewFailed(ordinal, question, f"{cause}: {message}")
        self._stop(Signal.CANCEL)

    def _hand_on(self, events: list[InterviewEvent], count: int) -> None:
        """To whoever listens; where nobody does, the places are free at once."""
        sealed: list[CommittedRow] = []
        for event in events:
            if isinstance(event, Rows):
                flight = self._chunks[event.id]
                flight.left -= len(event.rows)
                if self._listener is not None:
                    agents, scenarios = flight.chunk.agents, flight.chunk.scenarios
                    sealed += [CommittedRow(row, agents[row.agent], scenarios[row.scenario]) for row in event.rows]
        if self._listener is None:
            self._release(count)
        else:
            self._undelivered += count
            self._listener(sealed)

    def _end_chunks(self, events: list[InterviewEvent]) -> None:
        for event in events:
            if isinstance(event, ChunkEnded):
                self._undone = event.reason or self._undone
                self._release(self._chunks.pop(event.id).left)

    async def _watch(self, on_progress: Callable[[Progress], None] | None) -> None:
        while True:
            await asyncio.sleep(_READING_EVERY_S)
            self.read_memory()
            await self._memory.correct()
            self._lease()
            await self._look_after_file()
            if on_progress is not None:
                on_progress(self.progress())

    async def _look_after_file(self) -> None:
        """A file that is not at its path any more gets what is in flight, which is paid for, and nothing else."""
        if self._failure is None:
            try:
                self._file.live.check_is_in_place()
            except RunFileGone as gone:
                # What became of it and where its contents are is in the error; calls in flight may take minutes first.
                lost = "the file or its log was moved, removed or replaced"
                _log.warning("%s: %s; stopping: %d in flight", gone.path, lost, self.in_flight)
                self._failure = gone
                self._stop(Signal.CANCEL)
        if self._writer is not None:
            await self._writer.keep_log_short()

    def _read_memory_early(self, sealed: int) -> None:
        """While the window opens or is narrow, each windowful is followed by a reading, so that it may open further."""
        self._sealed_since_reading += sealed
        is_due = time.monotonic() - self._read_at_s >= _READING_AT_MOST_EVERY_S
        if is_due and self._window.is_narrowed and self._sealed_since_reading >= self._window.width:
            self.read_memory()

    def read_memory(self) -> None:
        """Let the window follow a new reading, where there is one."""
        self._sealed_since_reading, self._read_at_s = 0, time.monotonic()
        if self._memory.read(self._read_at_s):
            self._window.observe(self._memory.used_bytes, self._memory.pressure)
            self._changed.set()

    def _lease(self) -> None:
        self._executor.lease(
            Lease(
                interviews=self.concurrency,
                buffer_bytes=self._window.buffer_bytes,
                affordable=self._spending.affordable(),
            )
        )
