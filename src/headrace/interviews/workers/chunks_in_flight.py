"""Chunks on their way through workers, from their start until the last of their pieces has ended.

Covers: cutting pieces, the chunk's own ending, and rows for interviews that no worker could bring to an end.
Does not cover: which worker gets a piece (interviews.workers.assignment).
"""

from __future__ import annotations

import asyncio

from headrace.exit_causes import ExitCause
from headrace.interviews.contract import Chunk, Ended, Interview, Rows, Signal, Spec, Spent
from headrace.interviews.interview import Interviewer
from headrace.interviews.workers.chunk_parts import Flight, Piece
from headrace.interviews.workers.merged_events import MergedEvents
from headrace.store.run_file.row_batches import row_batch
from headrace.store.run_file.rows import DetailPacker, Row
from headrace.survey.prompts import persona
from headrace.survey.record import Cause, Usage
from headrace.survey.survey import Survey
from headrace.survey.values import decode_fields


class Flights:
    def __init__(self, events: MergedEvents) -> None:
        self._events = events
        self._failures: _FailedRows | None = None
        self._flights: dict[int, Flight] = {}  # bounded by the window
        self._over: dict[int, asyncio.Future[None]] = {}
        self._last_piece = 0

    def open(self, spec: Spec) -> None:
        self._failures = _FailedRows(spec)

    def begin(self, chunk: Chunk) -> Flight:
        flight = self._flights[chunk.id] = Flight(chunk)
        return flight

    def find(self, id: int, epoch: int) -> Flight | None:
        flight = self._flights.get(id)
        return flight if flight is not None and flight.chunk.epoch == epoch else None

    def piece(
        self,
        flight: Flight,
        interviews: list[Interview],
        *,
        is_trial: bool = False,
        is_last: bool = False,
        kills: int = 0,
    ) -> Piece:
        self._last_piece += 1
        flight.pieces += 1
        left = {each.ordinal: each for each in interviews}
        return Piece(self._last_piece, flight, left, is_trial or is_last, is_last, kills)

    def piece_over(self, flight: Flight) -> None:
        flight.pieces -= 1
        if flight.pieces:
            return
        chunk = flight.chunk
        del self._flights[chunk.id]
        causes = {None: ExitCause.DONE, Signal.KILL: ExitCause.LOST}
        cause = causes.get(flight.signal, ExitCause.PREEMPTED)
        self._events.emit(Ended(id=chunk.id, epoch=chunk.epoch, seq=0, cause=cause, reason=flight.undone))
        if (over := self._over.pop(chunk.id, None)) is not None and not over.done():
            over.set_result(None)

    async def is_over(self, flight: Flight, patience_s: float) -> bool:
        if flight.pieces == 0:
            return True
        over = self._over.setdefault(flight.chunk.id, asyncio.get_running_loop().create_future())
        await asyncio.wait([over], timeout=patience_s)
        return flight.pieces == 0

    def spent(self, flight: Flight, usage: Usage, unanswered: int = 0) -> int:
        """Tell of calls that no row of this chunk will tell of. Returns the event's number, 0 where there were none."""
        usage.calls += unanswered
        if not usage.calls:
            return 0
        chunk = flight.chunk
        self._events.emit(Spent(id=chunk.id, epoch=chunk.epoch, seq=0, usage=usage, unanswered=unanswered))
        return self._events.last_seq

    def fail(self, flight: Flight, interview: Interview, cause: Cause, message: str) -> None:
        assert self._failures is not None
        chunk = flight.chunk
        row = self._failures.row(chunk, interview, cause, message)
        self._events.emit(Rows(id=chunk.id, epoch=chunk.epoch, seq=0, rows=row_batch([row])))


class _FailedRows:
    """Rows of interviews that no worker could bring to an end."""

    def __init__(self, spec: Spec) -> None:
        self._interviewer = Interviewer(Survey.from_row(spec.survey), [], spec.retry)
        self._packer = DetailPacker(spec.dictionary)

    def row(self, chunk: Chunk, interview: Interview, cause: Cause, message: str) -> Row:
        fields = decode_fields(chunk.agents[interview.agent])
        scenario = decode_fields(chunk.scenarios[interview.scenario])
        respondent = self._interviewer.begin(interview, fields, scenario, persona(fields), lambda: True)
        row = self._interviewer.failed(respondent, cause, message)
        row.detail = self._packer.compress(row.detail)
        return row
