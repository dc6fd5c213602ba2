"""Runs interviews in worker processes with hard memory limits: the executor contract for chunks, once more.

    SurveyRun ── Chunk ──► IsolatedExecutor ── parts ──► WorkerSlot ══ worker: InlineExecutor
              ◄── Batch ──  merged, renumbered ◄── EventsSent ── ══ worker: InlineExecutor

Covers: the contract, keeping workers alive, and taking their events. Does not cover: which worker gets what, also
after another's death (interviews.workers.assignment), chunks and their endings (interviews.workers.chunks_in_flight),
merging events (outbox), one worker (interviews.workers.worker_slot), its inside
(interviews.workers.interview_worker), or how memory is divided (interviews.workers.survey_workers).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from headrace.errors import HeadraceError, spelled
from headrace.executor import Batch, Signal
from headrace.interviews.contract import Answers, Chunk, ChunkEnded, InterviewEvent, Lease, Observed, Rows, Spec
from headrace.interviews.workers.assignment import Assignment
from headrace.interviews.workers.chunks_in_flight import ChunksInFlight
from headrace.interviews.workers.interview_deaths import death_in_words
from headrace.interviews.workers.interview_wire import ChunkTaken, Opening, RowTooLarge
from headrace.interviews.workers.worker_place import WorkerPlace
from headrace.interviews.workers.worker_slot import SlotMessage, WorkerSlot
from headrace.models.address_list import AddressList, AddressListener
from headrace.models.limiter import EndpointState, Limiter
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.outbox import Outbox
from headrace.survey.known_services import SERVICES
from headrace.survey.model import Model
from headrace.survey.record import Cause
from headrace.units import format_bytes
from headrace.workers.deaths import DeathCause, death_cause
from headrace.workers.handle import TaskEnd
from headrace.workers.hosting.executor_wire import EventsSent, SignalWork, encode
from headrace.workers.local_warden import WardenLost
from headrace.workers.wire import Death, DeathKind, FunctionReference, TaskFailed

_CHUNK = 64  # interviews
_TICK_S = 1.0
_HANG_S = 120.0
_STOP_WITHIN_S = 1.0
_MOST_FAILED_STARTS = 3
_MOST_LOSSES = 10  # of each worker, with no row between them
_FIRST_REST_S = 0.05
_LONGEST_REST_S = 2.0
_ROWS_TO_WIDEN = 32  # for each interview at once


class IsolatedExecutor:
    """`functions` are those of the job (interviews.job_functions), by reference. A worker is ended when it has not
    answered for `hang_s`. Hosts may join while it is open, and are gone when the warden of their pool is lost.
    `on_unusable` hears of a host where no worker can be had; without it, that ends the run.
    """

    def __init__(
        self,
        places: Iterable[WorkerPlace],
        functions: list[dict[str, FunctionReference]],
        *,
        endpoints: SharedLimiters | None = None,
        cache: ResponseCache | None = None,
        hang_s: float = _HANG_S,
        on_unusable: Callable[[WorkerPlace, str], None] | None = None,
    ) -> None:
        self._places = list(places)  # until it is open
        self._functions = functions
        self._on_unusable = on_unusable
        self._opening: tuple[bytes, list[Limiter | None]] | None = None
        self._endpoints = endpoints or SharedLimiters()
        self._owns_endpoints = endpoints is None
        self._cache = cache
        self._hang_s = hang_s
        self._listening: list[tuple[Limiter, Callable[[EndpointState, str], None]]] = []
        self._addresses: dict[int, AddressList] = {}  # of the models with an address file, by position
        self._following: list[tuple[AddressList, AddressListener]] = []
        self._slots: list[WorkerSlot] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._outbox: Outbox[InterviewEvent] = Outbox()
        self._chunks = ChunksInFlight(self._outbox)
        self._assignment = Assignment(self._slots, self._chunks)
        self._failure: BaseException | None = None
        self._failed_starts = self._losses = 0
        self._lease: Lease | None = None
        self._at_once: int | None = None  # interviews in a worker, once one has met its memory limit
        self._rows_since_narrowed = 0

    @property
    def used_bytes(self) -> int:
        """What the workers use above what they were forked with, by the last readings."""
        return sum(slot.used_bytes for slot in self._slots)

    def in_flight_at(self, place: WorkerPlace) -> int:
        """How many interviews the workers of a host have."""
        return sum(slot.load for slot in self._slots if slot.place is place)

    @property
    def ahead(self) -> int:
        """Models that never wait keep a worker so busy that it should find the next chunks there; with others, each
        interview that was accepted is conducted."""
        return self._assignment.most_waiting * _CHUNK if all(slot.is_instant for slot in self._slots) else 0

    @property
    def holds_replies_back(self) -> bool:
        return False  # each worker does, within its limit

    async def open(self, spec: Spec) -> None:
        models = [Model.from_row(row) for row in spec.models]
        limiters = [self._limiter(position, model) for position, model in enumerate(models)]
        self._follow_addresses(models)
        opening = Opening(
            spec,
            self._functions,
            has_cache=self._cache is not None,
            has_network=all(model.service_name in SERVICES for model in models),
        )
        self._chunks.open(spec)
        self._opening = encode(opening), limiters
        for place in self._places:
            self.join(place)
        self._begin(self._watch())
        try:
            await self._all_opened()
        except BaseException:
            await self.close()
            raise

    def join(self, place: WorkerPlace) -> None:
        """Have the workers of one more host."""
        if self._opening is None:
            self._places.append(place)
            return
        for _ in range(place.workers):
            slot = self._slot(place, *self._opening)
            self._assignment.joined(slot)
            self._begin(self._keep(slot))
        if self._lease is not None:
            self._share_out(self._lease)
        self._assignment.assign()

    def lease(self, lease: Lease) -> None:
        self._lease = lease
        self._endpoints.allow(lease.interviews)
        self._outbox.bound(lease.buffer_bytes)
        self._assignment.affordable = lease.affordable
        self._share_out(lease)

    async def start(self, chunk: Chunk) -> None:
        await self._assignment.start(self._chunks.begin(chunk))

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        in_flight = self._chunks.find(id, epoch)
        if in_flight is None:
            return
        in_flight.signal = what
        self._assignment.drop(in_flight)
        held = [(slot, part) for slot in self._slots for part in slot.parts.values() if part.in_flight is in_flight]
        for slot, part in held:
            slot.post(SignalWork(part.id, part.epoch, what, deadline_s))
        if what is Signal.KILL and not await self._chunks.is_over(in_flight, min(_STOP_WITHIN_S, deadline_s)):
            for slot, _ in held:
                slot.kill("it would not stop", DeathKind.LOST)
            if not await self._chunks.is_over(in_flight, deadline_s):
                raise TimeoutError(f"chunk {id} would not be killed within {deadline_s} s")

    def events(self) -> AsyncIterator[Batch[InterviewEvent]]:
        return self._outbox.batches()

    def ack(self, upto: int) -> None:
        self._outbox.ack(upto)
        self._assignment.acked(upto)

    def fail(self, error: BaseException) -> None:
        """Have the run end with this error."""
        self._failure = error
        self._outbox.fail(error)
        self._assignment.stop()

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._listening:
            limiter, listener = self._listening.pop()
            limiter.unlisten(listener)
        while self._following:
            addresses, follower = self._following.pop()
            addresses.unlisten(follower)
        if self._owns_endpoints:
            self._endpoints.close()

    # Workers.

    async def _keep(self, slot: WorkerSlot) -> None:
        """Have a worker in a slot, whatever becomes of each, until its host is gone."""
        while True:
            ending = await self._lived(slot)
            is_gone = slot.place.pool.lost is not None
            if slot.is_renewed and not is_gone:
                continue
            if is_gone or self._is_unusable(slot, ending):
                self._assignment.left(slot, ending)
                return
            self._check_losses(ending)
            if death_cause(ending) is DeathCause.OUT_OF_MEMORY:
                self._narrow(slot)
            slot.is_resting = self._losses > 0
            self._assignment.again(slot, ending)
            if slot.is_resting:
                await asyncio.sleep(self._rest_s())
                slot.is_resting = False
                self._assignment.assign()

    async def _lived(self, slot: WorkerSlot) -> TaskEnd:
        """One worker's life; how it ended, or why none could be had."""
        try:
            return await slot.live()
        except WardenLost as error:
            return Death(0, DeathKind.WARDEN_ENDED, reason=error.message)
        except HeadraceError as error:
            if self._on_unusable is None:
                raise
            # On a host among others: the next worker that is wanted there starts another warden.
            return Death(0, DeathKind.WARDEN_ENDED, reason=error.message)

    def _is_unusable(self, slot: WorkerSlot, ending: TaskEnd) -> bool:
        """Where no worker comes up, there is no point in trying on."""
        has_opened, is_from_outside = slot.opened.is_set(), death_cause(ending) is DeathCause.LOST
        if not is_from_outside:
            self._failed_starts = 0 if has_opened else self._failed_starts + 1
        self._losses += is_from_outside or not slot.parts
        if self._failed_starts < _MOST_FAILED_STARTS and (has_opened or not isinstance(ending, TaskFailed)):
            return False
        reason = death_in_words(ending).rstrip(".")
        if self._on_unusable is None:
            raise HeadraceError(
                f"No worker can be had for these interviews: {reason}.",
                fix=spelled("Run it without {workers}; everything journaled is safe.", workers=None),
            )
        self._on_unusable(slot.place, reason)
        return True

    def _check_losses(self, ending: TaskEnd) -> None:
        """Where all workers are lost without a row between them, there is no point in trying on either."""
        if self._losses >= _MOST_LOSSES * max(1, len(self._slots)):
            raise HeadraceError(
                f"Workers do not live long enough to end one interview: {self._losses} ended from outside in a row, the"
                f" last of them because {death_in_words(ending).rstrip('.')}.",
                fix="Find out what ends them (a host short of memory says so in its kernel log), then run again:"
                " everything journaled is safe.",
            )

    def _rest_s(self) -> float:
        """How long a slot has no worker after one was killed from outside: longer each time, until a row has come."""
        return min(_LONGEST_REST_S, _FIRST_REST_S * 2 ** ((self._losses - 1) // max(1, len(self._slots))))

    # Memory.

    def _narrow(self, slot: WorkerSlot) -> None:
        """A worker has met its limit: from now on each has half as many interviews at once as it had."""
        at_once = min(slot.load, self._at_once or slot.load, self._lease.interviews if self._lease else slot.load)
        self._at_once = max(1, at_once // 2)
        self._rows_since_narrowed = 0
        if self._lease is not None:
            self._share_out(self._lease)

    def _widen(self, rows: int) -> None:
        """Many have come since then without another death: twice as many may be tried."""
        self._rows_since_narrowed += rows
        if self._at_once is None or self._lease is None or self._rows_since_narrowed < _ROWS_TO_WIDEN * self._at_once:
            return
        self._rows_since_narrowed = 0
        self._at_once = None if self._at_once * 2 >= self._lease.interviews else self._at_once * 2
        self._share_out(self._lease)

    def _share_out(self, lease: Lease) -> None:
        at_once = min(lease.interviews, self._at_once or lease.interviews)
        share = Lease(at_once, max(1, lease.buffer_bytes // max(1, len(self._slots))))
        for slot in self._slots:
            slot.lease(share)

    async def _watch(self) -> None:
        """Find workers that hang: a loop that does not answer is stuck in somebody's code."""
        tick_s = min(_TICK_S, self._hang_s / 4)
        while True:
            await asyncio.sleep(tick_s)
            for slot in self._slots:
                slot.tick(int(self._hang_s / tick_s), f"it did nothing else for {self._hang_s:g} s")

    async def _all_opened(self) -> None:
        while any(not slot.opened.is_set() for slot in self._slots) and self._failure is None:
            opened = [asyncio.create_task(slot.opened.wait()) for slot in self._slots if not slot.opened.is_set()]
            await asyncio.wait([*opened, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in opened:
                task.cancel()
        if self._failure is not None:
            raise self._failure

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    # What comes back.

    def _take_message(self, slot: WorkerSlot, message: SlotMessage, size_bytes: int) -> None:
        match message:
            case EventsSent():
                before = self._outbox.last_seq
                for event in message.batch.events:
                    self._take(slot, event)
                if self._outbox.last_seq > before:  # what came and is not on disk takes memory here
                    self._outbox.count_bytes(size_bytes)
                    self._outbox.free_with_last(size_bytes)
            case ChunkTaken():
                if part := slot.part(message.id, message.epoch):
                    self._assignment.taken(part)
            case RowTooLarge():
                self._fail_too_large(slot, message)

    def _fail_too_large(self, slot: WorkerSlot, message: RowTooLarge) -> None:
        part = slot.part(message.id, message.epoch)
        interview = part.left.pop(message.ordinal, None) if part is not None else None
        if part is not None and interview is not None and slot.host is not None:
            self._chunks.spent(part.in_flight, slot.charges.take([message.ordinal]))
            reason = f"what it keeps takes {format_bytes(message.size_bytes)}, more than a worker can send"
            self._chunks.fail(part.in_flight, interview, Cause.INTERNAL, reason)
            self._outbox.acknowledge_with_last(slot.host, message.seq)

    def _take(self, slot: WorkerSlot, event: InterviewEvent) -> None:
        """Turn an event of a part into one of its chunk. A late event of a part that was given out again is refused."""
        part = slot.part(event.id, event.epoch)
        if part is None or slot.host is None:
            return
        match event:
            case Rows():
                for ordinal in event.rows.ordinals:
                    part.left.pop(ordinal, None)
                slot.charges.sealed(event.rows.ordinals)
                self._losses = 0
                self._assignment.sealed(len(event.rows))
                self._widen(len(event.rows))
            case Answers():
                for ordinal, record in event.answers:
                    part.answered(ordinal, record)
                    slot.charges.answered(ordinal, record.question)
            case ChunkEnded():
                del slot.parts[event.id]
                self._assignment.over(slot, part)
                return
            case _:
                return
        event.id, event.epoch = part.in_flight.chunk.id, part.in_flight.chunk.epoch
        self._outbox.add_from(slot.host, event)

    def _slot(self, place: WorkerPlace, opening: bytes, limiters: list[Limiter | None]) -> WorkerSlot:
        has_room = self._outbox.has_room
        return WorkerSlot(place, opening, limiters, self._addresses, self._cache, self._take_message, has_room)

    def _limiter(self, position: int, model: Model) -> Limiter | None:
        if model.service_name == "test":
            return None
        limiter = self._endpoints.limiter(model)
        listener = partial(self._observed, position)
        limiter.listen(listener)
        self._listening.append((limiter, listener))
        return limiter

    def _follow_addresses(self, models: list[Model]) -> None:
        for position, model in enumerate(models):
            if (known := self._endpoints.addresses(model)) is not None:
                self._addresses[position] = known
                follower = partial(self._addresses_changed, position)
                known.listen(follower)
                self._following.append((known, follower))

    def _addresses_changed(self, model: int, _: tuple[str, ...]) -> None:
        for slot in self._slots:
            slot.tell_addresses(model)

    def _observed(self, model: int, state: EndpointState, reason: str) -> None:
        self._outbox.add(Observed(id=0, epoch=0, seq=0, model=model, state=state, reason=reason))
