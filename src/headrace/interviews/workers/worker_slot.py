"""A slot for a worker that conducts interviews, on the controller's side: when a worker ends, another one fills it.

Covers: a worker's life, what is sent to it, and the cached replies it asks for. Does not cover: the turns it asks for
(interviews.workers.worker_turns), which interviews it gets, and what becomes of them after its death
(interviews.workers.assignment).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from headrace.interviews.contract import InterviewEvent, Lease
from headrace.interviews.workers.chunk_parts import ChunkPart
from headrace.interviews.workers.interview_wire import (
    CacheAnswer,
    CacheLookup,
    CacheReply,
    CallEnded,
    CallFollowed,
    CallsBegun,
    Charged,
    ChunkTaken,
    FromSurveyWorker,
    InterviewSuspected,
    Ping,
    Pong,
    RowTooLarge,
    SetAddresses,
    SetLease,
    StartChunk,
    TurnGivenUp,
    TurnGranted,
    TurnRefused,
    TurnsRecalled,
    TurnWanted,
    WorkerOpened,
    decode_from_worker,
)
from headrace.interviews.workers.interview_worker import conduct_surveys
from headrace.interviews.workers.worker_place import WorkerPlace
from headrace.interviews.workers.worker_turns import WorkerTurns
from headrace.models.address_list import AddressList
from headrace.models.limiter import Limiter
from headrace.models.response_cache import ResponseCache
from headrace.survey.record import Usage
from headrace.workers.functions import refer_to
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.hosting.executor_wire import EventsSent, SignalWork
from headrace.workers.hosting.hosted_executor import HostedExecutor
from headrace.workers.wire import DeathKind, TaskFailed

SlotMessage: TypeAlias = ChunkTaken | EventsSent[InterviewEvent] | RowTooLarge
_DIES_WITHIN_S = 10.0


class UnreportedUsage:
    """What the calls of a worker's interviews were charged and no row or answer has counted yet: its death would hide
    it. The event Spent reports it then.
    """

    def __init__(self) -> None:
        self._usage: dict[int, dict[int, Usage]] = {}  # by ordinal and question; bounded by the window

    def charge(self, ordinal: int, question: int, usage: Usage) -> None:
        """`usage` is of all calls for the question so far."""
        self._usage.setdefault(ordinal, {})[question] = usage

    def answered(self, ordinal: int, question: int) -> None:
        """An answer has come that counts its own calls."""
        if (questions := self._usage.get(ordinal)) is not None:
            questions.pop(question, None)

    def sealed(self, ordinals: Iterable[int]) -> None:
        """Rows have come that count all of their calls."""
        if self._usage:  # not with models that charge nothing
            for ordinal in ordinals:
                self._usage.pop(ordinal, None)

    def take(self, ordinals: Iterable[int]) -> Usage:
        """Remove and return the usage of these interviews, which no row will count."""
        taken = Usage()
        for ordinal in ordinals:
            for usage in self._usage.pop(ordinal, {}).values():
                taken.include(usage)
        return taken


class WorkerSlot:
    """Room for one worker of `place`. `on_message` gets the worker's messages about interviews, with their size. While
    `may_read` is not set, nothing is read, and the worker waits. `suspect` is the interview that it has named before it
    ended, `unanswered` counts the calls that it had in flight then. `addresses` are those of models with an address
    file, by position.
    """

    def __init__(
        self,
        place: WorkerPlace,
        opening: bytes,
        limiters: list[Limiter | None],
        addresses: dict[int, AddressList],
        cache: ResponseCache | None,
        on_message: Callable[[WorkerSlot, SlotMessage, int], None],
        may_read: asyncio.Event,
    ) -> None:
        self.place = place
        self.limit_bytes = place.limit_bytes
        self._opening = opening
        self._addresses = addresses
        self._cache = cache
        self._on_message = on_message
        self._may_read = may_read
        self._lease: Lease | None = None
        self.host: HostedExecutor[FromSurveyWorker] | None = None
        self._turns = WorkerTurns(limiters, self.post)
        self._silent_ticks = 0
        self.opened = asyncio.Event()
        self.is_instant = False
        self.parts: dict[int, ChunkPart] = {}
        self.is_on_trial = False
        self.charges = UnreportedUsage()
        self.suspect: int | None = None
        self.unanswered = 0
        self.is_used = False
        self.is_renewed = False
        self.is_asleep = self.is_resting = False
        self._woken = asyncio.Event()

    @property
    def load(self) -> int:
        return sum([len(part.left) for part in self.parts.values()])

    @property
    def row_bytes(self) -> int:
        return sum([part.row_bytes for part in self.parts.values()])

    @property
    def untaken(self) -> int:
        return sum([not part.is_taken for part in self.parts.values()])

    @property
    def used_bytes(self) -> int:
        return self.host.worker.used_bytes if self.host is not None else 0

    def part(self, id: int, epoch: int) -> ChunkPart | None:
        """The part that the worker has, unless it was given out again since."""
        part = self.parts.get(id)
        return part if part is not None and part.epoch == epoch else None

    async def live(self) -> TaskEnd:
        """One worker from its start to its end; how it ended. While the slot is asleep it has none."""
        self.suspect = None
        self.is_used = self.is_renewed = False
        self._silent_ticks = 0
        self.opened.clear()
        worker = await self._new_worker()
        host = self.host = HostedExecutor(worker, refer_to(conduct_surveys), self._opening)
        try:
            if self._lease is not None:
                self.post(SetLease(self._lease))
            for model in self._addresses:
                self.tell_addresses(model)  # before the first interview
            for part in self.parts.values():
                self._send_part(part)
            return await host.listen(decode_from_worker, self._take, self._may_read)
        except msgspec.DecodeError as error:
            return TaskFailed(worker.tasks, f"It sent what makes no sense: {error}")
        finally:
            host.close()
            self.host = None
            self.unanswered = self._turns.give_all_back(is_host_lost=self.place.pool.lost is not None)
            worker.kill()
            # Then its memory is free again, and may be lent to another.
            await asyncio.wait([worker.ended], timeout=_DIES_WITHIN_S)

    async def _new_worker(self) -> Worker:
        while True:
            while self.is_asleep:
                self._woken.clear()
                await self._woken.wait()
            limit_bytes = self.limit_bytes
            worker = await self.place.pool.worker(limit_bytes)
            if limit_bytes == self.limit_bytes and not self.is_asleep:
                return worker
            worker.kill()  # made for what held before

    def give(self, part: ChunkPart) -> None:
        self.parts[part.id] = part
        self._send_part(part)

    def renew(self) -> None:
        """Replace a worker that has conducted interviews: it may hold on to memory of theirs."""
        if self.is_used:
            self.restart(self.limit_bytes)

    def restart(self, limit_bytes: int) -> None:
        """Have another worker, with this limit."""
        self.limit_bytes = limit_bytes
        if self.host is not None:
            self.is_renewed = True
            self.host.close()
            self.host.worker.kill()
            self.host = None  # what is given from now on is for the next

    def sleep(self, is_asleep: bool) -> None:
        """Have no worker, for as long: its memory is for another. Not while it has parts."""
        self.is_asleep = is_asleep
        if is_asleep:
            self.restart(self.limit_bytes)
        else:
            self._woken.set()

    def lease(self, lease: Lease) -> None:
        if lease != self._lease:
            self._lease = lease
            self.post(SetLease(lease))

    def tell_addresses(self, model: int) -> None:
        self.post(SetAddresses(model, list(self._addresses[model].urls)))

    def post(
        self,
        message: SignalWork | SetLease | SetAddresses | TurnGranted | TurnRefused | TurnsRecalled | CacheAnswer | Ping,
    ) -> None:
        """Send soon; nothing where there is no worker."""
        if self.host is not None:
            self.host.post(message)

    def kill(self, reason: str, kind: DeathKind) -> None:
        if self.host is not None:
            self.host.worker.kill(reason=reason, kind=kind)

    def tick(self, most_ticks: int, reason: str) -> None:
        """Ping the worker, and kill it after so many ticks without a Pong. Ticks are counted, not time: a controller
        that was stopped itself kills no worker for that.
        """
        if self.host is None:
            return
        if not self._may_read.is_set():
            self._silent_ticks = 0  # its Pong cannot be read
            return
        if self._silent_ticks == 0:
            self.post(Ping())
        self._silent_ticks += 1
        if self._silent_ticks > most_ticks:
            self.kill(reason, DeathKind.HUNG)

    def _send_part(self, part: ChunkPart) -> None:
        if self.host is not None:
            self.is_used = True
            self.host.send([StartChunk(part.as_chunk())])

    def _take(self, message: FromSurveyWorker, size_bytes: int) -> None:
        match message:
            case EventsSent() | ChunkTaken() | RowTooLarge():
                self._on_message(self, message, size_bytes)
            case TurnWanted():
                self._turns.wanted(message)
            case CallFollowed():
                self._turns.followed(message)
            case CallsBegun():
                self._turns.begun(message)
            case CallEnded():
                self._turns.ended(message)
            case Charged():
                self.charges.charge(message.ordinal, message.question, message.usage)
            case TurnGivenUp():
                self._turns.given_up(message.call)
            case CacheLookup():
                self.post(CacheAnswer(message.call, self._cache.get(message.key) if self._cache is not None else None))
            case CacheReply():
                if self._cache is not None:
                    self._cache.put(message.key, message.reply)
            case Pong():
                self._silent_ticks = 0
            case WorkerOpened():
                self.is_instant = message.is_instant
                self.opened.set()
            case InterviewSuspected():
                self.suspect = message.ordinal
