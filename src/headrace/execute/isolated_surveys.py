"""Runs interviews in worker processes with hard memory limits: the executor contract for chunks, once more.

    SurveyRun ── Chunk ──► IsolatedExecutor ── pieces ──► Lane ══ worker: InlineExecutor
              ◄── Batch ──  merged, renumbered ◄── Told ──      ══ worker: InlineExecutor

Covers: handing out chunks, merging what comes back, and what a worker's death costs: the interviews it had in flight
run again. Does not cover: one worker (execute.survey_lane), its inside (execute.survey_worker), which interviews are
suspected of a death (execute.survey_pieces), or how memory is divided (runtime.survey_workers).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial

from headrace.errors import HeadraceError
from headrace.execute.contract import (
    Answers,
    AnyEvent,
    Batch,
    Chunk,
    Ended,
    Interview,
    Lease,
    Observed,
    Outcome,
    Rows,
    Signal,
    Spec,
    Work,
)
from headrace.execute.endpoints import Endpoints
from headrace.execute.gate import Gate, Standing
from headrace.execute.interview import Interviewer
from headrace.execute.survey_lane import Heard, Lane
from headrace.execute.survey_pieces import MOST_PIECE_BYTES, Flight, Piece, aftermath, portions
from headrace.execute.survey_wire import Acked, Opening, Signalled, Taken, Told, TooLarge, encode
from headrace.execute.worker_handle import Ending
from headrace.execute.worker_pool import WorkerPool
from headrace.execute.worker_protocol import Death, DeathKind, Failed, FunctionReference, OutOfMemory
from headrace.store.response_cache import ResponseCache
from headrace.store.rows import DetailPacker
from headrace.store.sheets import sheet_of
from headrace.survey.known_services import SERVICES
from headrace.survey.models import Model
from headrace.survey.prompts import persona
from headrace.survey.record import Cause
from headrace.survey.survey import Survey
from headrace.survey.values import decode_fields
from headrace.units import format_bytes

_MOST_WAITING = 10  # chunks that no worker has taken yet
_CHUNK = 64  # interviews
_ROWS_PART = 8  # of a worker's memory, the part that rows of agents and scenarios may take
_TICK_S = 1.0
_HANG_S = 120.0
_STOP_WITHIN_S = 1.0
_MOST_FAILED_STARTS = 3
_FULL = 0.9  # of its limit: what ends there ends for lack of memory
_MOST_LOSSES = 5


class IsolatedExecutor:
    """`functions` are, for each model, its parameters that are functions, by reference. A worker may use `limit_bytes`
    above what it was forked with, and is ended when it has not answered for `hang_s`.
    """

    def __init__(
        self,
        pool: WorkerPool,
        functions: list[dict[str, FunctionReference]],
        *,
        workers: int,
        limit_bytes: int,
        endpoints: Endpoints | None = None,
        cache: ResponseCache | None = None,
        hang_s: float = _HANG_S,
    ) -> None:
        self._pool = pool
        self._functions = functions
        self._workers = workers
        self._limit_bytes = limit_bytes
        self._most_lane_bytes = limit_bytes // _ROWS_PART
        self._endpoints = endpoints or Endpoints()
        self._owns_endpoints = endpoints is None
        self._cache = cache
        self._hang_s = hang_s
        self._listening: list[tuple[Gate, Callable[[Standing, str], None]]] = []
        self._failures: _FailedRows | None = None
        self._lanes: list[Lane] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._flights: dict[int, Flight] = {}  # bounded by the window
        self._waiting: deque[Piece] = deque()
        self._trials: deque[Piece] = deque()
        self._over: dict[int, asyncio.Future[None]] = {}
        self._last_piece = 0
        self._room = asyncio.Event()
        self._events: list[AnyEvent] = []
        self._unacked: deque[tuple[int, Lane, int, int]] = deque()  # seq, whose, in which life, and its own seq
        self._held: deque[tuple[int, int]] = deque()  # seq, and the bytes of the message that it ended
        self._held_bytes = self._most_held_bytes = 0
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._seq = 0
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._failed_starts = self._losses = 0

    @property
    def used_bytes(self) -> int:
        """What the workers use above what they were forked with, by the last readings."""
        return sum(lane.used_bytes for lane in self._lanes)

    @property
    def ahead(self) -> int:
        """Models that never wait keep a worker so busy that it should find the next chunks there; with others, each
        interview that was accepted is conducted."""
        return _MOST_WAITING * _CHUNK if all(lane.is_instant for lane in self._lanes) else 0

    async def open(self, spec: Spec) -> None:
        models = [Model.from_row(row) for row in spec.models]
        gates = [self._gate(place, model) for place, model in enumerate(models)]
        opening = Opening(
            spec,
            self._functions,
            has_cache=self._cache is not None,
            has_network=all(model.service_name in SERVICES for model in models),
        )
        self._failures = _FailedRows(spec)
        for _ in range(self._workers):
            self._lanes.append(
                Lane(self._pool, self._limit_bytes, encode(opening), gates, self._cache, self._heard, self._may_read)
            )
        for work in (*(self._keep(lane) for lane in self._lanes), self._watch()):
            task = asyncio.create_task(work)
            task.add_done_callback(self._task_ended)
            self._tasks.append(task)
        try:
            await self._all_opened()
        except BaseException:
            await self.close()
            raise

    def lease(self, lease: Lease) -> None:
        self._endpoints.allow(lease.interviews)
        self._most_held_bytes = lease.buffer_bytes
        self._bound_reading()
        share = Lease(lease.interviews, max(1, lease.buffer_bytes // max(1, len(self._lanes))))
        for lane in self._lanes:
            lane.lease(share)

    async def start(self, work: Work) -> None:
        if not isinstance(work, Chunk):
            raise HeadraceError("This executor runs chunks of interviews only.")
        flight = self._flights[work.id] = Flight(work)
        for group in portions(work, min(MOST_PIECE_BYTES, self._most_lane_bytes)):
            self._waiting.append(self._piece(flight, group))
        self._assign()
        while self._failure is None and (self._waiting or self._not_taken() > _MOST_WAITING):
            self._room.clear()
            await self._room.wait()

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        flight = self._flights.get(id)
        if flight is None or flight.chunk.epoch != epoch:
            return
        flight.signal = what
        self._drop_waiting(flight)
        held = [(lane, piece) for lane in self._lanes for piece in lane.pieces.values() if piece.flight is flight]
        for lane, piece in held:
            lane.post(Signalled(piece.id, epoch, what, deadline_s))
        if what is Signal.KILL and not await self._is_over(flight, min(_STOP_WITHIN_S, deadline_s)):
            for lane, _ in held:
                lane.kill("it would not stop", DeathKind.LOST)
            if not await self._is_over(flight, deadline_s):
                raise TimeoutError(f"chunk {id} would not be killed within {deadline_s} s")

    async def events(self) -> AsyncIterator[Batch]:
        while True:
            await self._ready.wait()
            self._ready.clear()
            if self._failure is not None:
                raise self._failure
            events, self._events = self._events, []
            if events:
                yield Batch(events[-1].seq, events)

    def ack(self, upto: int) -> None:
        acked: dict[Lane, int] = {}
        while self._unacked and self._unacked[0][0] <= upto:
            _, lane, life, seq = self._unacked.popleft()
            if lane.lives == life:
                acked[lane] = seq
        for lane, seq in acked.items():
            lane.post(Acked(seq))
        while self._held and self._held[0][0] <= upto:
            self._held_bytes -= self._held.popleft()[1]
        self._bound_reading()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._listening:
            gate, listener = self._listening.pop()
            gate.unlisten(listener)
        if self._owns_endpoints:
            self._endpoints.close()

    # Workers.

    async def _keep(self, lane: Lane) -> None:
        """Have a worker in a lane, whatever becomes of each."""
        while True:
            ending = await lane.live()
            if lane.is_renewed:
                continue
            self._check_start(lane, ending)
            self._bury(lane, ending)
            self._assign()

    def _check_start(self, lane: Lane, ending: Ending) -> None:
        """Where no worker comes up, or all are lost without a row between, there is no point in trying on."""
        has_opened, was_idle = lane.opened.is_set(), not lane.pieces
        self._failed_starts = 0 if has_opened else self._failed_starts + 1
        self._losses += was_idle or not _is_to_blame(ending)
        is_hopeless = self._failed_starts >= _MOST_FAILED_STARTS or self._losses >= _MOST_LOSSES
        if is_hopeless or (not has_opened and isinstance(ending, Failed)):
            raise HeadraceError(
                f"No worker can be had for these interviews: {_told(ending).rstrip('.')}.",
                fix="Run it without workers=; everything journaled is safe.",
            )

    def _bury(self, lane: Lane, ending: Ending) -> None:
        """Hand the interviews of a dead worker out again: those it may have died of one by one in the end."""
        lost, lane.pieces = lane.pieces, {}
        is_blamed = lane.opened.is_set() and _is_to_blame(ending)
        for piece in lost.values():
            flight = piece.flight
            if flight.signal is None:
                after = aftermath(piece, lane.suspect, is_blamed=is_blamed)
                if after.again:
                    self._waiting.append(self._piece(flight, after.again))
                for group in after.trials:
                    self._trials.append(self._piece(flight, group, is_trial=True))
                if after.failed is not None:
                    self._fail(flight, after.failed, _cause(ending), _told(ending))
            self._piece_over(flight)
        lane.is_on_trial = bool(self._trials)

    async def _watch(self) -> None:
        """Find workers that hang: a loop that does not answer is stuck in somebody's code."""
        tick_s = min(_TICK_S, self._hang_s / 4)
        while True:
            await asyncio.sleep(tick_s)
            for lane in self._lanes:
                lane.tick(int(self._hang_s / tick_s), f"it did nothing else for {self._hang_s:g} s")

    async def _all_opened(self) -> None:
        for lane in self._lanes:
            opened = asyncio.create_task(lane.opened.wait())
            await asyncio.wait([opened, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            opened.cancel()
            if self._failure is not None:
                raise self._failure

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = error
            self._ready.set()
            self._room.set()

    # Handing out.

    def _piece(self, flight: Flight, interviews: list[Interview], *, is_trial: bool = False) -> Piece:
        self._last_piece += 1
        flight.pieces += 1
        return Piece(self._last_piece, flight, {each.ordinal: each for each in interviews}, is_trial)

    def _assign(self) -> None:
        for lane in self._lanes:
            if lane.is_on_trial and not lane.pieces:
                if self._trials:
                    lane.renew()
                    self._give(lane, self._trials.popleft())
                else:
                    lane.is_on_trial = False
        while self._waiting and (lane := self._lane_for(self._waiting[0])) is not None:
            self._give(lane, self._waiting.popleft())
        self._room.set()

    def _lane_for(self, piece: Piece) -> Lane | None:
        """The least busy that has room: what waits in a worker takes of the memory that its interviews need."""
        room_bytes = self._most_lane_bytes - piece.row_bytes
        lanes = [lane for lane in self._lanes if not lane.is_on_trial]
        return min((lane for lane in lanes if not lane.pieces or lane.row_bytes <= room_bytes), key=_load, default=None)

    def _give(self, lane: Lane, piece: Piece) -> None:
        if piece.row_bytes <= MOST_PIECE_BYTES:
            lane.give(piece)
            return
        for interview in piece.left.values():  # one: nothing was put beside it
            size = format_bytes(piece.row_bytes)
            message = f"its agent and scenario take {size}, more than a worker can be sent"
            self._fail(piece.flight, interview, Cause.DATA, message)
        self._piece_over(piece.flight)

    def _not_taken(self) -> int:
        return sum(lane.untaken for lane in self._lanes)

    def _drop_waiting(self, flight: Flight) -> None:
        for line in (self._waiting, self._trials):
            for piece in [piece for piece in line if piece.flight is flight]:
                line.remove(piece)
                self._piece_over(flight)
        self._room.set()

    # What comes back.

    def _bound_reading(self) -> None:
        """What came and is not on disk takes memory here; beyond the lease's share, workers wait to be read."""
        if self._held_bytes <= self._most_held_bytes:
            self._may_read.set()
        else:
            self._may_read.clear()

    def _heard(self, lane: Lane, told: Heard, size_bytes: int) -> None:
        match told:
            case Told():
                before = self._seq
                for event in told.batch.events:
                    self._take(lane, event)
                if self._seq > before:
                    self._held.append((self._seq, size_bytes))
                    self._held_bytes += size_bytes
                    self._bound_reading()
            case Taken():
                if told.id in lane.pieces:
                    lane.pieces[told.id].is_taken = True
                self._room.set()
            case TooLarge():
                piece = lane.pieces.get(told.id)
                interview = piece.left.pop(told.ordinal, None) if piece is not None else None
                if piece is not None and interview is not None:
                    message = f"what it keeps takes {format_bytes(told.size_bytes)}, more than a worker can send"
                    self._fail(piece.flight, interview, Cause.INTERNAL, message)
                    self._unacked.append((self._seq, lane, lane.lives, told.seq))

    def _take(self, lane: Lane, event: AnyEvent) -> None:
        """An event of a piece becomes one of its chunk."""
        piece = lane.pieces.get(event.id)
        if piece is None:
            return
        worker_seq = event.seq
        match event:
            case Rows():
                for ordinal in event.sheet.ordinals:
                    piece.left.pop(ordinal, None)
                self._losses = 0
            case Answers():
                for ordinal, record in event.answers:
                    piece.answered(ordinal, record)
            case Ended():
                del lane.pieces[event.id]
                self._piece_over(piece.flight)
                self._assign()
                return
            case _:
                return
        event.id = piece.flight.chunk.id
        self._emit(event)
        self._unacked.append((event.seq, lane, lane.lives, worker_seq))

    def _piece_over(self, flight: Flight) -> None:
        flight.pieces -= 1
        if flight.pieces:
            return
        chunk = flight.chunk
        del self._flights[chunk.id]
        outcomes = {None: Outcome.DONE, Signal.KILL: Outcome.LOST}
        outcome = outcomes.get(flight.signal, Outcome.PREEMPTED)
        self._emit(Ended(id=chunk.id, epoch=chunk.epoch, seq=0, outcome=outcome))
        if (over := self._over.pop(chunk.id, None)) is not None and not over.done():
            over.set_result(None)

    async def _is_over(self, flight: Flight, patience_s: float) -> bool:
        if flight.pieces == 0:
            return True
        over = self._over.setdefault(flight.chunk.id, asyncio.get_running_loop().create_future())
        await asyncio.wait([over], timeout=patience_s)
        return flight.pieces == 0

    def _fail(self, flight: Flight, interview: Interview, cause: Cause, message: str) -> None:
        assert self._failures is not None
        chunk = flight.chunk
        row = self._failures.row(chunk, interview, cause, message)
        self._emit(Rows(id=chunk.id, epoch=chunk.epoch, seq=0, sheet=sheet_of([row])))

    def _emit(self, event: AnyEvent) -> None:
        self._seq += 1
        event.seq = self._seq
        self._events.append(event)
        self._ready.set()

    def _gate(self, place: int, model: Model) -> Gate | None:
        if model.service_name == "test":
            return None
        gate = self._endpoints.gate(model)
        listener = partial(self._observed, place)
        gate.listen(listener)
        self._listening.append((gate, listener))
        return gate

    def _observed(self, model: int, standing: Standing, reason: str) -> None:
        self._emit(Observed(id=0, epoch=0, seq=0, model=model, standing=standing, reason=reason))


class _FailedRows:
    """Rows of interviews that no worker could bring to an end."""

    def __init__(self, spec: Spec) -> None:
        self._interviewer = Interviewer(Survey.from_row(spec.survey), [], spec.retry)
        self._packer = DetailPacker(spec.dictionary)

    def row(self, chunk: Chunk, interview: Interview, cause: Cause, message: str):
        fields = decode_fields(chunk.agents[interview.agent])
        scenario = decode_fields(chunk.scenarios[interview.scenario])
        respondent = self._interviewer.begin(interview, fields, scenario, persona(fields), lambda: True)
        row = self._interviewer.failed(respondent, cause, message)
        row.detail = self._packer.compress(row.detail)
        return row


def _load(lane: Lane) -> int:
    return lane.load


def _is_to_blame(ending: Ending) -> bool:
    """Whether what the worker did may have ended it; not where the warden was lost, or we ended it ourselves."""
    return not (isinstance(ending, Death) and ending.kind is DeathKind.LOST)


def _cause(ending: Ending) -> Cause:
    return Cause.OUT_OF_MEMORY if isinstance(ending, OutOfMemory) or _is_memory(ending) else Cause.CRASHED


def _is_memory(ending: Ending) -> bool:
    """Also where a library that is not Python's gave up at the limit: Rust aborts, C may crash."""
    if not isinstance(ending, Death):
        return False
    at_limit = 0 < ending.limit_bytes * _FULL <= ending.peak_bytes
    return ending.kind is DeathKind.OUT_OF_MEMORY or (at_limit and ending.kind is not DeathKind.LOST)


def _told(ending: Ending) -> str:
    match ending:
        case OutOfMemory():
            return (
                f"its worker met its memory limit, also alone ({ending.reason}; {format_bytes(ending.used_bytes)} used)"
            )
        case Death() if _is_memory(ending):
            limit, used = format_bytes(ending.limit_bytes), format_bytes(ending.peak_bytes)
            return f"its worker was ended at {used}, with a limit of {limit}, also alone"
        case Death(signal=None, reason=""):
            return f"its worker exited with code {ending.code}"
        case Death(reason=""):
            return f"its worker was ended by signal {ending.signal}"
        case Death():
            return f"its worker was ended: {ending.reason}"
        case Failed():
            return f"its worker failed: {ending.reason.partition(chr(10))[0]}"
        case _:
            return "its worker ended without a word"
