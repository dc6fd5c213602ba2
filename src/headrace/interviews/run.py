"""Runs a survey: admits interviews, has an executor conduct them, journals their rows, and releases their permits.

    _feed      Admission.next_chunk ──► OpenChunks.make ──► executor.start
    _journal   executor.events ──► WriterThread.call ──► ack ──► Tally, Window, the listener ──► Admission.release
    _watch     ten times a second: memory, the executor's lease, the file in its place, progress

Covers: these three tasks, and steering: pause, tune, stop, ask again. It runs on one event loop.
Does not cover: opening and closing the file (interviews.session), deciding (interviews.admission, interviews.window),
or conducting interviews (interviews.inline, interviews.workers).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from headrace.errors import HeadraceError, NotSteerable, RunFileGone
from headrace.executor import Batch
from headrace.interviews.admission import Admission
from headrace.interviews.contract import (
    Answers,
    ChunkEnded,
    InterviewEvent,
    InterviewExecutor,
    Lease,
    Observed,
    Rows,
    Spent,
)
from headrace.interviews.cursors import Cursors
from headrace.interviews.endpoint_states import EndpointStates
from headrace.interviews.open_chunks import CommittedRow, OpenChunks, spec_of
from headrace.interviews.stopping import RunStop
from headrace.interviews.tally import Tally
from headrace.interviews.window import Window
from headrace.limits import Keep, RunOptions
from headrace.memory.governed import GovernedMemory
from headrace.memory.measure.os_limits import expect_blocks_of
from headrace.memory.measure.process import own_resident_bytes
from headrace.models.http_client.reply_room import WITHIN_BUDGETS
from headrace.plan.bitmap import Bitmap
from headrace.plan.job import Job
from headrace.plan.portion import Portion
from headrace.priority import Priority
from headrace.progress.pace import Progress
from headrace.results.totals.running_totals import RunTotals
from headrace.results.totals.written_totals import TotalledRow
from headrace.store.disk_errors import translated_errors
from headrace.store.run_file.keeping.stored_totals import TotalState
from headrace.store.run_file.rows import RowBatch
from headrace.store.run_file.run_file import RunFile
from headrace.store.writer_thread import WriterThread
from headrace.survey.record import Cause, DetailShape

if TYPE_CHECKING:
    from headrace.telemetry.interview_spans import InterviewSpans

_READING_EVERY_S = 0.1
_log = logging.getLogger("headrace")

Listener: TypeAlias = Callable[[list[CommittedRow]], None]


class SurveyRun:
    """`listener` gets committed rows and must answer each batch with `delivered`; until then they hold permits.

    `totals` get each row inside the commit that writes it. `priority` is that of its calls. `telemetry` gets committed
    rows where they are exported, and holds none of their permits.
    """

    def __init__(
        self,
        job: Job,
        file: RunFile,
        writer: WriterThread,
        options: RunOptions,
        memory: GovernedMemory,
        executor: InterviewExecutor,
        listener: Listener | None,
        totals: RunTotals | None = None,
        priority: Priority = Priority.NORMAL,
        telemetry: InterviewSpans | None = None,
    ) -> None:
        self._job = job
        self._telemetry = telemetry
        self._priority = priority
        self._file = file
        self._writer = writer
        self._options = options
        self._memory = memory
        self._executor = executor
        self._listener = listener
        self._totals = totals
        self.portion = Portion(
            len(file.plan), limit=options.limit, sample=options.sample, seed=options.seed, left_out=file.left_out
        )
        self._cursors = cursors = Cursors(file.plan, self.portion.passed_over(file.done), self.portion.stop)
        self._asked_again = Bitmap(0)
        self._endpoints = EndpointStates(job.called_models, len(job.models), cursors)
        self._window = Window(memory.limits, file.budgets.window)
        self._admission = Admission(cursors, self._window)
        self._chunks = OpenChunks(file)
        self.tally = Tally(job, file, self._endpoints, reused=self.portion.count(file.done), total=self.portion.total)
        self._admission.afford(self.tally.spending.affordable())
        self._changed = asyncio.Event()  # something may be admitted, or the run may have ended
        self._stop = RunStop(self._admission, self._chunks, executor, self._changed)
        self._ahead = 0  # interviews that wait in the executor, beside those in flight
        self._undelivered = 0
        self._elsewhere_bytes = 0  # in use outside this process, at the last reading
        memory.read(time.monotonic())  # what there is before any work

    @property
    def was_stopped(self) -> bool:
        return self._stop.requests > 0

    @property
    def concurrency(self) -> int:
        return self._window.concurrency - self._ahead

    @property
    def in_flight(self) -> int:
        return self._admission.in_flight

    @property
    def to_ask_again(self) -> int:
        """How many failed interviews are asked again and have not ended yet."""
        return self._asked_again.count

    @property
    def interview_bytes(self) -> int:
        """What one interview in flight is expected to hold."""
        return self._window.interview_bytes

    def why_incomplete(self) -> HeadraceError:
        """The error of a run that has ended by itself before its plan has."""
        return self.tally.why_incomplete(is_spent=self._admission.is_spent)

    def progress(self) -> Progress:
        return self.tally.progress(self._memory, self._admission.in_flight, is_paused=self._admission.is_paused)

    async def run(self, on_progress: Callable[[Progress], None]) -> None:
        """Return when every interview has its row, or the run was stopped; raise what it failed with. Everything
        journaled by then stays.
        """
        self.read_memory()
        await self._executor.open(spec_of(self._job, self._file, self._details(), self._priority))
        # Rows that a listener has not taken yet stay in memory: then each interview counts as if it had its reply.
        self._window.is_held_back = self._executor.holds_replies_back and self._listener is None
        self._ahead = self._executor.ahead
        self._window.tune(self._window.concurrency + self._ahead)
        self._lease()
        work = (self._feed(), self._take_events(), self._watch(on_progress))
        tasks = {asyncio.create_task(each) for each in work}
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._executor.close()
        if self._stop.failure is not None:
            raise self._stop.failure

    def request_stop(self) -> None:
        """Stop, because the caller has gone: nothing more is delivered, and undelivered rows release their permits."""
        self._listener = None
        self.delivered(self._undelivered)
        self.stop()

    def stop(self) -> None:
        """Once: admit nothing more, and let interviews in flight end. Twice: stop now; what is journaled stays."""
        self._stop.request()

    def stop_gently(self) -> None:
        """Stop once what is in flight has ended; refused where that was asked already, and `stop` would stop now."""
        if self.was_stopped:
            raise NotSteerable("it is stopping already: what is in flight ends first", path=self._file.path)
        self.stop()

    def stop_now(self) -> None:
        """Give up what is in flight; what is journaled stays."""
        self._stop.request_now()

    def pause(self) -> None:
        """Admit nothing more, let interviews in flight end, and wait."""
        self._admission.pause()

    def resume(self) -> None:
        self._admission.resume()
        self._changed.set()

    def tune(self, concurrency: int) -> None:
        """Let so many interviews be in flight; the executor hears of it with the next lease."""
        self._window.tune(concurrency + self._ahead)
        self._changed.set()

    def keep_concurrency(self, concurrency: int) -> None:
        """Tune, because the user wants it, and have the file keep it for later runs."""
        self.tune(concurrency)
        self._stop.do_beside(lambda: self._writer.call(self._file.keep_concurrency, concurrency))

    def retry_failed(self, causes: Collection[Cause] = tuple(Cause)) -> int:
        """Ask those again that have failed for one of these causes; how many these are."""
        self._check_can_retry()
        failed = self.portion.of(self._file.failed_to_ask_again(causes))
        count = failed.count_below(self.portion.stop)
        if count:
            self._asked_again = failed
            self._cursors.again(failed.inverted())
            self.tally.put_back(count)
            self._admission.reopen()
            self._changed.set()
        return count

    def _check_can_retry(self) -> None:
        if self._listener is not None:
            why = "its results are delivered one by one, each once: it can be asked again when it has ended"
        elif self.was_stopped or self._stop.failure is not None or self._admission.finished:
            why = "it is ending: it can be asked again when it has ended"
        elif self._asked_again.count:
            why = f"{self._asked_again.count:,} of its failed interviews are being asked again already"
        else:
            return
        raise NotSteerable(why, path=self._file.path)

    def delivered(self, count: int) -> None:
        """The listener is done with so many rows."""
        count = min(count, self._undelivered)
        self._undelivered -= count
        self._release(count)

    def read_memory(self) -> None:
        """Take a reading, and let the window follow it."""
        now_s = time.monotonic()
        self._memory.read(now_s)
        self._window.observe(self._memory.used_bytes, self._memory.pressure, now_s)
        self._elsewhere_bytes = self._memory.used_bytes - own_resident_bytes()
        self._file.journal.note_memory(self._memory)
        self._changed.set()

    async def _feed(self) -> None:
        while not self._admission.finished and not self._stop.is_abandoned:
            ordinals = self._admission.next_chunk()
            if ordinals:
                with translated_errors(self._file.path):
                    chunk = self._chunks.make(ordinals)
                await self._executor.start(chunk)
            elif not self._admission.finished:
                self._changed.clear()
                await self._changed.wait()

    async def _take_events(self) -> None:
        """Group commit without a timer: whatever came while the last COMMIT ran makes the next batch."""
        async for batch in self._executor.events():
            events = self._chunks.new_events(batch)
            rows = [event for event in events if isinstance(event, Rows)]
            row_batches = [event.rows for event in rows]
            answers = [answer for event in events if isinstance(event, Answers) for answer in event.answers]
            if answers:
                self._note_size(self._window.answered, max(record.held_bytes() for _, record in answers))
            spent = [event for event in events if isinstance(event, Spent)]
            if row_batches or answers or spent:
                lost = [event.usage for event in spent]
                aggregate = self._aggregating(rows) if self._totals is not None and rows else None
                with WITHIN_BUDGETS.committing():
                    await self._writer.call(self._file.journal.commit, row_batches, answers, lost, aggregate)
            if spent:
                self._note_lost(spent)
            self._executor.ack(batch.upto)
            if row_batches:
                self._note_rows(row_batches)
                if self._telemetry is not None:
                    self._telemetry.take(row_batches, self._chunks.kept_questions(rows))
                self._deliver(rows)
            self._end_chunks(events)
            self._note_endpoint_states(batch)

    def _aggregating(self, events: list[Rows]) -> Callable[[], list[TotalState]]:
        """What the journal's thread calls to add these rows to the totals."""
        assert self._totals is not None
        rows = [TotalledRow(*each) for each in self._chunks.committed_rows(events)]
        return partial(self._totals.take, rows)

    def _details(self) -> DetailShape:
        """How much of an interview its executor sends: what is neither kept, delivered nor added up is not even
        encoded.
        """
        match self._file.keeping.keep:
            case Keep.EVERYTHING:
                return DetailShape.WHOLE
            case Keep.ANSWERS:
                return DetailShape.SLIM
            case Keep.NOTHING:
                is_used = self._listener is not None or (self._totals is not None and self._totals.needs_detail)
                if is_used:
                    return DetailShape.WHOLE
                return DetailShape.OF_FAILED if self._telemetry is None else self._telemetry.needed_details

    async def _watch(self, on_progress: Callable[[Progress], None]) -> None:
        while True:
            await asyncio.sleep(_READING_EVERY_S)
            self.read_memory()
            await self._memory.correct()
            self._lease()
            self._check_file_is_in_place()
            await self._note_idle_run()
            await self._writer.keep_log_short()
            on_progress(self.progress())

    async def _note_idle_run(self) -> None:
        """Have the file note that a run which commits nothing still goes on, and how much memory it takes."""
        if self._stop.failure is None and self._file.journal.is_note_due:
            await self._writer.call(self._file.journal.note_idle_run)

    def _note_lost(self, spent: list[Spent]) -> None:
        """Before the acknowledgement, with which lost interviews are conducted again: as far as the budget allows."""
        self.tally.add_lost(spent)
        self._admission.afford(self.tally.spending.affordable())
        self._lease()

    def _note_rows(self, row_batches: list[RowBatch]) -> None:
        self.tally.add_rows(row_batches)
        if self._asked_again.count:
            for ordinal in (each for rows in row_batches for each in rows.ordinals):
                self._asked_again.discard(ordinal)
        if self._options.stop_on_exception and self._stop.failure is None:
            failed = self.tally.failure_among(row_batches)
            if failed is not None:
                self._stop.fail(failed)
        self._admission.afford(self.tally.spending.affordable())
        self._note_size(self._window.ended, max(rows.largest_bytes for rows in row_batches))
        if self._window.wants_reading(sum(map(len, row_batches)), time.monotonic()):
            self.read_memory()

    def _note_size(self, note: Callable[[int], None], largest_bytes: int) -> None:
        """Have the window and the C library know how large answers are."""
        note(largest_bytes)
        expect_blocks_of(largest_bytes)

    def _deliver(self, events: list[Rows]) -> None:
        """Hand rows to the listener; where there is none, release their permits at once."""
        self._chunks.count_down(events)
        count = sum(len(event.rows) for event in events)
        if self._listener is None:
            self._release(count)
        else:
            self._undelivered += count
            self._listener(self._chunks.committed_rows(events))

    def _end_chunks(self, events: list[InterviewEvent]) -> None:
        for event in events:
            if isinstance(event, ChunkEnded):
                self.tally.left_because = event.reason or self.tally.left_because
                self._release(self._chunks.end(event.id))

    def _note_endpoint_states(self, batch: Batch[InterviewEvent]) -> None:
        for event in batch.events:
            if isinstance(event, Observed):
                self._endpoints.note(event)
                self._changed.set()

    def _check_file_is_in_place(self) -> None:
        """A file that is not at its path any more gets the rows of interviews in flight and nothing else."""
        if self._stop.failure is not None:
            return
        try:
            self._file.live.check_is_in_place()
        except RunFileGone as gone:
            # What became of it and where its contents are is in the error; calls in flight may take minutes first.
            lost = "the file or its log was moved, removed or replaced"
            _log.warning("%s: %s; stopping: %d in flight", gone.path, lost, self.in_flight)
            self._stop.fail(gone)

    def _release(self, count: int) -> None:
        self._admission.release(count)
        self._changed.set()

    def _most_resident_bytes(self) -> int | None:
        """How large this process may become before nothing more is admitted; None where no reply has to wait for it."""
        if not self._window.is_held_back:
            return None
        memory = self._memory
        return memory.limits.bytes_at(memory.limits.preempt_at, memory.budget_bytes) - self._elsewhere_bytes

    def _lease(self) -> None:
        self._executor.lease(
            Lease(
                interviews=self.concurrency,
                buffer_bytes=self._window.buffer_bytes,
                affordable=self.tally.spending.affordable(),
                most_resident_bytes=self._most_resident_bytes(),
            )
        )
