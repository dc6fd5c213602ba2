"""Chunks on their way through workers, from their start until the last of their parts has ended.

Covers: cutting parts, the chunk's own ending, and rows for interviews that no worker could bring to an end.
Does not cover: which worker gets a part (interviews.workers.assignment).
"""

from __future__ import annotations

import asyncio

from headrace.executor import Signal
from headrace.exit_causes import ExitCause
from headrace.interviews.contract import Chunk, ChunkEnded, Interview, InterviewEvent, Rows, Spec, Spent
from headrace.interviews.interview import Interviewer
from headrace.interviews.workers.chunk_parts import ChunkInFlight, ChunkPart
from headrace.outbox import Outbox
from headrace.store.run_file.rows import DetailPacker, Row, row_batch
from headrace.survey.people.agent_settings import SettingsTable
from headrace.survey.prompts import persona
from headrace.survey.record import Cause, Usage
from headrace.survey.survey import Survey
from headrace.survey.templates import CannotRender
from headrace.survey.values import decode_fields


class ChunksInFlight:
    def __init__(self, outbox: Outbox[InterviewEvent]) -> None:
        self._outbox = outbox
        self._failures: _FailedRows | None = None
        self._chunks: dict[int, ChunkInFlight] = {}  # bounded by the window
        self._over: dict[int, asyncio.Future[None]] = {}
        self._last_part = 0

    def open(self, spec: Spec) -> None:
        self._failures = _FailedRows(spec)

    def begin(self, chunk: Chunk) -> ChunkInFlight:
        in_flight = self._chunks[chunk.id] = ChunkInFlight(chunk)
        return in_flight

    def find(self, id: int, epoch: int) -> ChunkInFlight | None:
        in_flight = self._chunks.get(id)
        return in_flight if in_flight is not None and in_flight.chunk.epoch == epoch else None

    def part(
        self,
        in_flight: ChunkInFlight,
        interviews: list[Interview],
        *,
        id: int | None = None,
        epoch: int = 1,
        is_trial: bool = False,
        is_last: bool = False,
        kills: int = 0,
    ) -> ChunkPart:
        """A part with these interviews: a new one, or one that is given out again in the next epoch."""
        if id is None:
            self._last_part += 1
        in_flight.parts += 1
        left = {each.ordinal: each for each in interviews}
        return ChunkPart(id or self._last_part, in_flight, left, is_trial, is_last, kills, epoch)

    def part_over(self, in_flight: ChunkInFlight) -> None:
        in_flight.parts -= 1
        if in_flight.parts:
            return
        chunk = in_flight.chunk
        del self._chunks[chunk.id]
        causes = {None: ExitCause.DONE, Signal.KILL: ExitCause.LOST}
        cause = causes.get(in_flight.signal, ExitCause.PREEMPTED)
        self._outbox.add(ChunkEnded(id=chunk.id, epoch=chunk.epoch, seq=0, cause=cause, reason=in_flight.undone))
        if (over := self._over.pop(chunk.id, None)) is not None and not over.done():
            over.set_result(None)

    async def is_over(self, in_flight: ChunkInFlight, patience_s: float) -> bool:
        if in_flight.parts == 0:
            return True
        over = self._over.setdefault(in_flight.chunk.id, asyncio.get_running_loop().create_future())
        await asyncio.wait([over], timeout=patience_s)
        return in_flight.parts == 0

    def spent(self, in_flight: ChunkInFlight, usage: Usage, unanswered: int = 0) -> int:
        """Report calls that no row of this chunk will count. Return the event's number, 0 where there were none."""
        usage.calls += unanswered
        if not usage.calls:
            return 0
        chunk = in_flight.chunk
        self._outbox.add(Spent(id=chunk.id, epoch=chunk.epoch, seq=0, usage=usage, unanswered=unanswered))
        return self._outbox.last_seq

    def fail(self, in_flight: ChunkInFlight, interview: Interview, cause: Cause, message: str) -> None:
        assert self._failures is not None
        chunk = in_flight.chunk
        row = self._failures.row(chunk, interview, cause, message)
        self._outbox.add(Rows(id=chunk.id, epoch=chunk.epoch, seq=0, rows=row_batch([row])))


class _FailedRows:
    """Rows of interviews that no worker could bring to an end."""

    def __init__(self, spec: Spec) -> None:
        self._interviewer = Interviewer(Survey.from_row(spec.survey), [], spec.retry, details=spec.details)
        self._packer = DetailPacker(spec.dictionary)
        self._settings = SettingsTable.from_row(spec.agent_settings)

    def row(self, chunk: Chunk, interview: Interview, cause: Cause, message: str) -> Row:
        fields = decode_fields(chunk.agents[interview.agent])
        scenario = decode_fields(chunk.scenarios[interview.scenario])
        try:
            system = persona(fields, self._settings.of(fields), self._interviewer.wording)
        except CannotRender:  # the reason that is given here comes first
            system = ""
        respondent = self._interviewer.begin(interview, fields, scenario, system, lambda: True)
        row = self._interviewer.failed(respondent, cause, message)
        row.detail = self._packer.compress(row.detail)
        return row
