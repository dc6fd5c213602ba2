"""Runs agent functions in worker processes. Covers: the executor contract for agent runs, the controller's side.

A slot has a worker: a run and its children live in it, and when it ends, by whatever cause, they end with that cause.
Stopping is cooperative first, inside the worker; then SIGTERM, then SIGKILL, each with its deadline. Does not cover:
the worker's side (agents.workers.agent_worker), which limits are lent (workers.lender), or what follows from an end.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import assert_never

from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.contract import (
    AgentEvent,
    AgentRun,
    Emitted,
    LoopStuck,
    MemoryUsed,
    NearlyFull,
    RemoteError,
    RunEnded,
    SlotWaits,
    StepDone,
    StepRaised,
    StepStarting,
)
from headrace.agents.task import TaskKind
from headrace.agents.workers.agent_deaths import (
    exit_after_death,
    in_step,
    is_own_death,
    memory_error_in_words,
    where_it_died,
)
from headrace.agents.workers.agent_wire import (
    BeginRun,
    EffectRaised,
    FromAgentWorker,
    KindRegistered,
    LeaveWorker,
    StepAnswer,
    StepEntered,
    ToAgentWorker,
    decode_from_worker,
)
from headrace.agents.workers.agent_worker import SPOILED, host_runs
from headrace.errors import HeadraceError
from headrace.executor import Batch, Signal
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from headrace.workers.functions import find_at_home, refer_to
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.hosting.executor_wire import EventsSent, SignalWork
from headrace.workers.hosting.hosted_executor import HostedExecutor
from headrace.workers.lender import Lender, Loan, NoRoomError
from headrace.workers.lending import is_nearly_full
from headrace.workers.pool import WorkerPool
from headrace.workers.warden.watch import REPORTED_STEP_BYTES
from headrace.workers.wire import TaskDone

_HARDER_AFTER_S = 1.0
_LEAVES_WITHIN_S = 1.0
_WANTS_MEMORY_EVERY_S = 0.02
_SHARE_OUT_AFTER_S = 0.1
_STOPPED_AS = {Signal.PREEMPT: ExitCause.PREEMPTED, Signal.CANCEL: ExitCause.LOST, Signal.KILL: ExitCause.LOST}


@dataclass(slots=True, eq=False)
class _Attempt:
    """One attempt in a worker; `step` is the last it was about to take."""

    id: int
    epoch: int
    kind: str
    step: str = ""
    peak_bytes: int = 0
    answers: int = 0  # sent to it
    signal: Signal | None = None
    effects: set[str] = field(default_factory=set[str])  # steps whose side effects are under way


@dataclass(slots=True, eq=False)
class _AgentSlot:
    """A slot of the engine, its worker and the runs in it. Messages wait in `unsent` until the worker is there."""

    number: int
    reserved_bytes: int
    priority: Priority
    runs: dict[int, _Attempt] = field(default_factory=dict[int, _Attempt])
    host: HostedExecutor[FromAgentWorker] | None = None
    loan: Loan | None = None
    keeper: asyncio.Task[None] | None = None
    wanted_memory_s: float = -math.inf  # when it was last told that there is none for it
    unsent: list[ToAgentWorker] = field(default_factory=list["ToAgentWorker"])
    limit_before_bytes: int = 0  # it waited
    until_raised: list[ToAgentWorker] | None = None  # what waits for the limit of a slot that has waited

    @property
    def worker(self) -> Worker | None:
        return self.host.worker if self.host is not None else None

    def send(self, message: ToAgentWorker) -> None:
        if self.host is None:
            self.unsent.append(message)
        else:
            self.host.send([message])

    def limit_lately(self) -> int:
        return self.loan.limit_lately(asyncio.get_running_loop().time()) if self.loan is not None else 0

    def attempt(self, id: int, epoch: int) -> _Attempt | None:
        """The attempt at a run that is in the worker, unless another has replaced it."""
        run = self.runs.get(id)
        return run if run is not None and run.epoch == epoch else None


class IsolatedAgents:
    """`kinds` by name: one that is not among them cannot be run. `register` hears of kinds of children."""

    def __init__(
        self,
        pool: WorkerPool,
        lender: Lender,
        kinds: Mapping[str, TaskKind],
        spools: Path,
        register: Callable[[TaskKind], None],
    ) -> None:
        self._pool = pool
        self._lender = lender
        self._kinds = kinds
        self._spools = spools
        self._register = register
        self._outbox = AgentOutbox()
        self._slots: dict[int, _AgentSlot] = {}  # by slot
        self._slot_of: dict[int, _AgentSlot] = {}  # by run
        self._keepers: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()  # of those, the ones whose runs have all ended
        self._settling: asyncio.Task[None] | None = None
        self._raising: set[asyncio.Task[None]] = set()
        self._returned: asyncio.TimerHandle | None = None
        self._entry = refer_to(host_runs)

    def start(self, work: AgentRun) -> None:
        slot = self._slots.get(work.slot)
        try:
            function = refer_to(self._kinds[work.kind].function)
        except HeadraceError as error:
            self._add_end(_Attempt(work.id, work.epoch, work.kind), ExitCause.FAILED, str(error))
            return
        if slot is None:
            slot = self._slots[work.slot] = _AgentSlot(work.slot, work.memory_bytes, work.priority)
            slot.keeper = asyncio.get_running_loop().create_task(self._keep(slot))
            self._keepers.add(slot.keeper)
            slot.keeper.add_done_callback(self._keepers.discard)
            slot.keeper.add_done_callback(self._leaving.discard)
        slot.runs[work.id] = _Attempt(work.id, work.epoch, work.kind)
        self._slot_of[work.id] = slot
        self._go_on(slot, BeginRun(work, function))

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        slot, run = self._found(id, epoch)
        if slot is None or run is None:
            return
        run.signal = what
        if what is Signal.KILL and deadline_s <= 0:
            self._harder(slot, run, signal.SIGKILL)
            return
        slot.send(SignalWork(id, epoch, what, deadline_s))
        if deadline_s == math.inf:
            return
        # A worker that still listens cancels the run at the deadline by itself.
        after_s = deadline_s + (_HARDER_AFTER_S if what is Signal.PREEMPT else 0.0)
        asyncio.get_running_loop().call_later(after_s, self._harder, slot, run, signal.SIGTERM)

    def put(self, id: int, epoch: int, step: str, data: bytes | None, error: RemoteError | None = None) -> None:
        slot, run = self._found(id, epoch)
        if slot is not None and run is not None:
            run.effects.discard(step)  # of a program: its end is known here, not in the worker
            run.answers += 1
            self._go_on(slot, StepAnswer(id, epoch, step, data, error))

    def set_priority(self, id: int, epoch: int, priority: Priority) -> None:
        slot, _ = self._found(id, epoch)
        if slot is None:
            return
        slot.priority = priority
        if slot.loan is not None:
            slot.loan.priority = priority
            self._settle_soon()

    def reserve_less(self, id: int, epoch: int, memory_bytes: int) -> None:
        slot, _ = self._found(id, epoch)
        if slot is None:
            return
        slot.reserved_bytes = memory_bytes
        if slot.loan is not None:  # others take the rest with their next loan, or when they are short
            slot.loan.reserved_bytes = memory_bytes

    def events(self) -> AsyncIterator[Batch[AgentEvent]]:
        return self._outbox.batches()

    def ack(self, upto: int) -> None:
        self._outbox.ack(upto)

    def read(self, worker: int) -> None:
        """There is a reading of the warden's; one that is nearly full gets more, where there is more."""
        for slot in self._slots.values():
            if slot.worker is not None and slot.worker.id == worker:
                counted_bytes = slot.worker.counted_bytes
                self._report_use(slot, counted_bytes)
                if slot.runs and is_nearly_full(counted_bytes, slot.worker.limit_bytes):
                    self._settle_soon()

    def stuck(self, worker: int, seconds: float, stack: str) -> None:
        """Report it for the newest run in the slot: a parent is mostly waiting for its child."""
        for slot in self._slots.values():
            if slot.worker is not None and slot.worker.id == worker and slot.runs:
                run = next(reversed(slot.runs.values()))
                self._outbox.add(LoopStuck(id=run.id, epoch=run.epoch, seq=0, seconds=seconds, stack=stack))

    async def close(self) -> None:
        for slot in self._slots.values():
            slot.runs.clear()
            if slot.worker is not None:
                slot.worker.kill()
        keepers = list(self._keepers)
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        if self._returned is not None:  # by keepers that have just ended
            self._returned.cancel()
        for settling in (self._settling, *self._raising):
            if settling is not None:
                settling.cancel()

    def _found(self, id: int, epoch: int) -> tuple[_AgentSlot | None, _Attempt | None]:
        slot = self._slot_of.get(id)
        run = slot.attempt(id, epoch) if slot is not None else None
        return (slot, run) if run is not None else (None, None)

    async def _keep(self, slot: _AgentSlot) -> None:
        """From the loan to its return: one worker, until its runs have ended or it has."""
        if self._leaving:  # what they were lent is about to be free, and one of them may be used again
            await asyncio.wait(self._leaving, timeout=_LEAVES_WITHIN_S)
        try:
            slot.loan = await self._lender.lend(
                slot.reserved_bytes, partial(self._started, slot), priority=slot.priority, is_promised=True
            )
            slot.loan.priority = slot.priority  # it may have been raised meanwhile
            ending = await self._hosted(slot)
            steps = {run.id: (run.kind, run.step) for run in slot.runs.values()}
            for run in list(slot.runs.values()):
                cause, reason = exit_after_death(ending, where_it_died(run.id, steps))
                self._end_with(slot, run, cause, reason, is_own=is_own_death(ending))
        except NoRoomError:  # it waits in the queue again
            for run in list(slot.runs.values()):
                self._end_with(slot, run, ExitCause.PREEMPTED, "the memory it was promised is in use again")
        except HeadraceError as error:
            for run in list(slot.runs.values()):
                self._end_with(slot, run, ExitCause.LOST, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, each of these runs must end with an event
            reason = f"what its worker said could not be understood: {type(error).__name__}: {error}"
            for run in list(slot.runs.values()):
                self._end_with(slot, run, ExitCause.FAILED, reason)
        finally:
            if self._slots.get(slot.number) is slot:  # a child may have come back to the slot, in a worker of its own
                del self._slots[slot.number]
            if slot.worker is not None:
                self._pool.give_back(slot.worker)
            if slot.loan is not None:
                self._lender.returned(slot.loan)
            self._settle_later()

    async def _started(self, slot: _AgentSlot, limit_bytes: int) -> Worker:
        worker = await self._pool.worker(limit_bytes, slot.reserved_bytes)
        slot.host = HostedExecutor(worker, self._entry, os.fsencode(self._spools))
        unsent, slot.unsent = slot.unsent, []
        if unsent:
            slot.host.send(unsent)
        # The warden reports a worker that has moved by a step since its last report, which may be of the task before:
        # one that moves less is never reported, and its kind's size would not be learned while it goes on.
        self._report_use(slot, REPORTED_STEP_BYTES)
        return worker

    def _report_use(self, slot: _AgentSlot, memory_bytes: int) -> None:
        if slot.runs:
            run = next(iter(slot.runs.values()))  # stands for all in the slot
            self._outbox.add(MemoryUsed(id=run.id, epoch=run.epoch, seq=0, memory_bytes=memory_bytes))

    async def _hosted(self, slot: _AgentSlot) -> TaskEnd:
        host = slot.host
        assert host is not None
        is_over = False
        try:
            ending = await host.listen(decode_from_worker, partial(self._take, slot), self._outbox.has_room)
            is_over = isinstance(ending, TaskDone) and ending.payload != SPOILED
            return ending
        finally:
            host.close()
            host.worker.is_spoiled |= not is_over

    def _take(self, slot: _AgentSlot, message: FromAgentWorker, _size_bytes: int) -> None:
        match message:
            case EventsSent():
                for event in message.batch.events:
                    self._pass_on(slot, event)
            case StepEntered():
                if run := slot.attempt(message.id, message.epoch):
                    run.step = message.step
            case EffectRaised():
                if run := slot.attempt(message.id, message.epoch):
                    run.effects.discard(message.step)
            case KindRegistered():
                kind = TaskKind(
                    name=message.name,
                    function=find_at_home(message.function),
                    max_attempts=message.max_attempts,
                    timeout_s=message.timeout_s,
                    memory_bytes=message.memory_bytes,
                    breaker=message.breaker,
                    oom_retry=message.oom_retry,
                )
                self._register(kind)
            case _:
                assert_never(message)

    def _pass_on(self, slot: _AgentSlot, event: AgentEvent) -> None:
        """A late event of an attempt that was ended from here, or replaced, is refused."""
        run = slot.attempt(event.id, event.epoch)
        if run is None or slot.host is None:
            return
        if isinstance(event, Emitted):
            self._outbox.add_or_drop(event)
            return
        if isinstance(event, RunEnded) and event.cause is ExitCause.OUT_OF_MEMORY:
            event.reason = memory_error_in_words(event.reason, slot.host.worker, run.peak_bytes, in_step(run.step))
            event.limit_bytes = slot.limit_lately()
        self._outbox.add_from(slot.host, event)
        if isinstance(event, MemoryUsed):
            run.peak_bytes = event.memory_bytes
        elif isinstance(event, StepStarting):
            run.effects.add(event.step)
        elif isinstance(event, (StepDone, StepRaised)):
            run.effects.discard(event.step)
        elif isinstance(event, SlotWaits):
            self._begin_wait(slot, event)
        elif isinstance(event, RunEnded):
            self._forget(slot, run)

    def _begin_wait(self, slot: _AgentSlot, event: SlotWaits) -> None:
        """Take back what a slot that waits does not use, unless something is on its way to it."""
        if slot.loan is not None and event.answers == {run.id: run.answers for run in slot.runs.values()}:
            slot.loan.is_waiting, slot.limit_before_bytes = True, slot.loan.limit_bytes
            self._settle_soon()

    def _go_on(self, slot: _AgentSlot, message: ToAgentWorker) -> None:
        """Send what makes a run compute; to a worker whose limit was lowered meanwhile, once that is raised again."""
        loan = slot.loan
        was_waiting = loan is not None and loan.is_waiting
        if loan is not None:
            loan.is_waiting = False
        if slot.until_raised is not None:
            slot.until_raised.append(message)
        elif loan is not None and was_waiting and loan.limit_bytes < slot.limit_before_bytes:
            slot.until_raised = [message]
            raising = asyncio.get_running_loop().create_task(self._raise_limit(slot))
            self._raising.add(raising)
            raising.add_done_callback(self._raising.discard)
        else:
            slot.send(message)

    async def _raise_limit(self, slot: _AgentSlot) -> None:
        try:
            await self._lender.settle()
        finally:
            messages, slot.until_raised = slot.until_raised, None
            for message in messages or ():
                slot.send(message)

    def _end_with(self, slot: _AgentSlot, run: _Attempt, cause: ExitCause, reason: str, *, is_own: bool = True) -> None:
        """End a run whose worker has ended. A run that had been signalled has stopped as asked."""
        if run.signal is not None and cause is ExitCause.LOST:
            cause = _STOPPED_AS[run.signal]
            reason = ""
        self._add_end(run, cause, reason, slot.limit_lately(), is_own=is_own)
        self._forget(slot, run)

    def _add_end(
        self, run: _Attempt, cause: ExitCause, reason: str, limit_bytes: int = 0, *, is_own: bool = True
    ) -> None:
        ended = RunEnded(id=run.id, epoch=run.epoch, seq=0, cause=cause, reason=reason, step=run.step)
        ended.limit_bytes, ended.is_own = limit_bytes, is_own
        self._outbox.add(ended)

    def _forget(self, slot: _AgentSlot, run: _Attempt) -> None:
        del slot.runs[run.id]
        del self._slot_of[run.id]
        if not slot.runs and self._slots.get(slot.number) is slot:
            self._leave(slot)

    def _leave(self, slot: _AgentSlot) -> None:
        """Let the worker of an empty slot end its task."""
        del self._slots[slot.number]
        if slot.keeper is not None:
            self._leaving.add(slot.keeper)
        if slot.loan is not None:
            slot.loan.reserved_bytes = 0
        slot.send(LeaveWorker())
        asyncio.get_running_loop().call_later(_LEAVES_WITHIN_S, self._evict, slot)

    def _evict(self, slot: _AgentSlot) -> None:
        """Something that a run has left behind, a thread or a task, keeps its worker from leaving."""
        if slot.keeper is not None and not slot.keeper.done() and slot.worker is not None:
            slot.worker.kill()

    def _harder(self, slot: _AgentSlot, run: _Attempt, number: int) -> None:
        """It has not stopped in time. Inside a side effect, its own or of another run in the worker, that would leave a
        doubt, which only an emergency may.
        """
        if slot.runs.get(run.id) is not run:
            return
        loop = asyncio.get_running_loop()
        if run.signal is Signal.PREEMPT and any(each.effects for each in slot.runs.values()):
            loop.call_later(_HARDER_AFTER_S, self._harder, slot, run, number)
            return
        if slot.worker is not None:
            slot.worker.kill(number)
        elif number == signal.SIGKILL:  # it has not even begun
            slot.unsent = [m for m in slot.unsent if not (isinstance(m, BeginRun) and m.work.id == run.id)]
            self._end_with(slot, run, ExitCause.LOST, "")
            return
        loop.call_later(_HARDER_AFTER_S, self._harder, slot, run, signal.SIGKILL)

    def _settle_later(self) -> None:
        """What came back is shared out, unless the next worker takes it before, or one is short of it."""
        if self._is_any_short():
            self._settle_soon()
        elif self._returned is None:
            self._returned = asyncio.get_running_loop().call_later(_SHARE_OUT_AFTER_S, self._share_out)

    def _is_any_short(self) -> bool:
        return any(slot.loan is not None and slot.loan.is_short for slot in self._slots.values())

    def _share_out(self) -> None:
        self._returned = None
        self._settle_soon()

    def _settle_soon(self) -> None:
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        await self._lender.settle()
        if self._is_any_short():  # it may have grown while limits moved: what others do not use comes first
            await self._lender.settle()
        now_s = asyncio.get_running_loop().time()
        for slot in self._slots.values():
            is_due = now_s - slot.wanted_memory_s >= _WANTS_MEMORY_EVERY_S
            if is_due and slot.runs and slot.loan is not None and self._lender.has_none_for(slot.loan):
                slot.wanted_memory_s = now_s
                run = next(iter(slot.runs.values()))  # stands for all in the slot
                self._outbox.add(NearlyFull(id=run.id, epoch=run.epoch, seq=0, is_urgent=slot.loan.is_urgent))
