"""Runs agent functions in worker processes. Covers: the executor contract for agent runs, the controller's side.

A slot has a worker, on one of the hosts that have joined: a run and its children live in it, and when it ends, by
whatever cause, they end with that cause.
Stopping is cooperative first, inside the worker; then SIGTERM, then SIGKILL, each with its deadline. Does not cover:
the worker's side (agents.workers.agent_worker), a host's workers and memory (agents.workers.agent_host), or what
follows from an end.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import assert_never

from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.contract import (
    AgentEvent,
    AgentRun,
    Emitted,
    MemoryUsed,
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
from headrace.agents.workers.agent_host import AgentHost
from headrace.agents.workers.agent_slots import AgentSlot, Attempt
from headrace.agents.workers.agent_wire import (
    BeginRun,
    EffectRaised,
    FromAgentWorker,
    FunctionMissing,
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
from headrace.workers.lender import NoRoomError
from headrace.workers.warden.watch import REPORTED_STEP_BYTES
from headrace.workers.wire import TaskDone

_HARDER_AFTER_S = 1.0
_LEAVES_WITHIN_S = 1.0
_STOPPED_AS = {Signal.PREEMPT: ExitCause.PREEMPTED, Signal.CANCEL: ExitCause.LOST, Signal.KILL: ExitCause.LOST}


class IsolatedAgents:
    """`kinds` by name: one that is not among them cannot be run. `register` hears of kinds of children."""

    def __init__(self, kinds: Mapping[str, TaskKind], register: Callable[[TaskKind], None]) -> None:
        self._kinds = kinds
        self._register = register
        self._outbox = AgentOutbox()
        self._hosts: dict[str, AgentHost] = {}
        self._slot_of: dict[int, AgentSlot] = {}  # by run
        self._entry = refer_to(host_runs)

    def join(self, host: AgentHost) -> None:
        """Runs may be started there from now on."""
        host.outbox = self._outbox
        self._hosts[host.name] = host

    async def lose(self, host: AgentHost) -> list[AgentEvent]:
        """A host is gone, and its pool has heard so: forget the attempts there. Return the events that have come from
        all hosts and that nobody has read yet: what those of this host say is journaled before they are given up.
        """
        host.is_lost = True
        await host.keepers_ended()
        if self._hosts.get(host.name) is host:
            del self._hosts[host.name]
        return self._outbox.take_waiting()

    def start(self, work: AgentRun) -> None:
        host = self._hosts.get(work.host)
        if host is None or host.is_lost:
            return  # the engine is about to hear that the host is lost, and the run with it
        slot = host.slots.get(work.slot)
        try:
            function = refer_to(self._kinds[work.kind].function)
        except HeadraceError as error:
            self._add_end(Attempt(work.id, work.epoch, work.kind), ExitCause.FAILED, str(error))
            return
        if slot is None:
            slot = host.slots[work.slot] = AgentSlot(work.slot, host, work.memory_bytes, work.priority)
            slot.keeper = asyncio.get_running_loop().create_task(self._keep(slot))
            host.keepers.add(slot.keeper)
            slot.keeper.add_done_callback(host.keepers.discard)
            slot.keeper.add_done_callback(host.leaving.discard)
        slot.runs[work.id] = Attempt(work.id, work.epoch, work.kind)
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
        slot.send_signal(SignalWork(id, epoch, what, deadline_s))
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
            slot.host.settle_soon()

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

    async def close(self) -> None:
        await asyncio.gather(*(host.close() for host in self._hosts.values()))

    def _found(self, id: int, epoch: int) -> tuple[AgentSlot | None, Attempt | None]:
        slot = self._slot_of.get(id)
        run = slot.attempt(id, epoch) if slot is not None else None
        return (slot, run) if run is not None else (None, None)

    async def _keep(self, slot: AgentSlot) -> None:
        """From the loan to its return: one worker, until its runs have ended or it has."""
        host = slot.host
        if host.leaving:  # what they were lent is about to be free, and one of them may be used again
            await asyncio.wait(host.leaving, timeout=_LEAVES_WITHIN_S)
        try:
            slot.loan = await host.lender.lend(
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
            if host.slots.get(slot.number) is slot:  # a child may have come back to the slot, in a worker of its own
                del host.slots[slot.number]
            if slot.worker is not None:
                host.pool.give_back(slot.worker)
            if slot.loan is not None:
                host.lender.returned(slot.loan)
            host.settle_later()

    async def _started(self, slot: AgentSlot, limit_bytes: int) -> Worker:
        worker = await slot.host.pool.worker(limit_bytes, slot.reserved_bytes)
        slot.hosted = HostedExecutor(worker, self._entry, slot.host.spools)
        unsent, slot.unsent = slot.unsent, []
        if unsent:
            slot.hosted.send(unsent)
        # The warden reports a worker that has moved by a step since its last report, which may be of the task before:
        # one that moves less is never reported, and its kind's size would not be learned while it goes on.
        slot.host.report_use(slot, REPORTED_STEP_BYTES)
        return worker

    async def _hosted(self, slot: AgentSlot) -> TaskEnd:
        hosted = slot.hosted
        assert hosted is not None
        is_over = False
        try:
            ending = await hosted.listen(decode_from_worker, partial(self._take, slot), self._outbox.has_room)
            is_over = isinstance(ending, TaskDone) and ending.payload != SPOILED
            return ending
        finally:
            hosted.close()
            hosted.worker.is_spoiled |= not is_over

    def _take(self, slot: AgentSlot, message: FromAgentWorker, _size_bytes: int) -> None:
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
            case FunctionMissing():
                if run := slot.attempt(message.id, message.epoch):
                    self._function_missing(slot, run, message.reason)
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

    def _function_missing(self, slot: AgentSlot, run: Attempt, reason: str) -> None:
        """On a host among others, that is the host's fault: it is given up, and the run goes on elsewhere."""
        if slot.host.on_unusable is not None:
            slot.host.on_unusable(reason)
            return
        self._add_end(run, ExitCause.FAILED, reason)
        self._forget(slot, run)

    def _pass_on(self, slot: AgentSlot, event: AgentEvent) -> None:
        """A late event of an attempt that was ended from here, or replaced, is refused."""
        run = slot.attempt(event.id, event.epoch)
        if run is None or slot.hosted is None:
            return
        if isinstance(event, Emitted):
            self._outbox.add_or_drop(event)
            return
        if isinstance(event, RunEnded) and event.cause is ExitCause.OUT_OF_MEMORY:
            event.reason = memory_error_in_words(event.reason, slot.hosted.worker, run.peak_bytes, in_step(run.step))
            event.limit_bytes = slot.limit_lately()
        self._outbox.add_from(slot.hosted, event)
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

    def _begin_wait(self, slot: AgentSlot, event: SlotWaits) -> None:
        """Take back what a slot that waits does not use, unless something is on its way to it."""
        if slot.loan is not None and event.answers == {run.id: run.answers for run in slot.runs.values()}:
            slot.loan.is_waiting, slot.limit_before_bytes = True, slot.loan.limit_bytes
            slot.host.settle_soon()

    def _go_on(self, slot: AgentSlot, message: ToAgentWorker) -> None:
        """Send what makes a run compute; to a worker whose limit was lowered meanwhile, or is about to be, once that is
        raised again.
        """
        loan = slot.loan
        was_waiting = loan is not None and loan.is_waiting
        if loan is not None:
            loan.is_waiting = False
        if slot.until_raised is None and loan is not None and was_waiting and loan.sure_bytes < slot.limit_before_bytes:
            slot.until_raised = []
            slot.host.raise_limit(slot)
        slot.send_in_turn(message)

    def _end_with(self, slot: AgentSlot, run: Attempt, cause: ExitCause, reason: str, *, is_own: bool = True) -> None:
        """End a run whose worker has ended. A run that had been signalled has stopped as asked."""
        if run.signal is not None and cause is ExitCause.LOST:
            cause = _STOPPED_AS[run.signal]
            reason = ""
        if not slot.host.is_lost:  # the engine gives up what is left of a lost host at once
            self._add_end(run, cause, reason, slot.limit_lately(), is_own=is_own)
        self._forget(slot, run)

    def _add_end(
        self, run: Attempt, cause: ExitCause, reason: str, limit_bytes: int = 0, *, is_own: bool = True
    ) -> None:
        ended = RunEnded(id=run.id, epoch=run.epoch, seq=0, cause=cause, reason=reason, step=run.step)
        ended.limit_bytes, ended.is_own = limit_bytes, is_own
        self._outbox.add(ended)

    def _forget(self, slot: AgentSlot, run: Attempt) -> None:
        del slot.runs[run.id]
        del self._slot_of[run.id]
        if not slot.runs and slot.host.slots.get(slot.number) is slot:
            self._leave(slot)

    def _leave(self, slot: AgentSlot) -> None:
        """Let the worker of an empty slot end its task."""
        del slot.host.slots[slot.number]
        if slot.keeper is not None:
            slot.host.leaving.add(slot.keeper)
        if slot.loan is not None:
            slot.loan.reserved_bytes = 0
        slot.send(LeaveWorker())
        asyncio.get_running_loop().call_later(_LEAVES_WITHIN_S, self._evict, slot)

    def _evict(self, slot: AgentSlot) -> None:
        """Something that a run has left behind, a thread or a task, keeps its worker from leaving."""
        if slot.keeper is not None and not slot.keeper.done() and slot.worker is not None:
            slot.worker.kill()

    def _harder(self, slot: AgentSlot, run: Attempt, number: int) -> None:
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
