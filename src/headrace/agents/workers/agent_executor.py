"""Runs agent functions in worker processes. Covers: the executor contract for agent runs, the controller's side.

A slot has a worker: a run and its children live in it, and when it ends, by whatever cause, they end with that cause.
Stopping is cooperative first, inside the worker; then SIGTERM, then SIGKILL, each with its deadline. Does not cover:
the worker's side (agents.workers.agent_worker), which limits are lent (workers.lender), or what follows from an end.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
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
    RemoteError,
    RunEnded,
    StepDone,
    StepRaised,
    StepStarting,
)
from headrace.agents.task import TaskKind
from headrace.agents.workers.agent_deaths import exit_after_death, memory_error_in_words
from headrace.agents.workers.agent_wire import (
    Ack,
    BeginRun,
    EffectRaised,
    KindRegistered,
    LeaveWorker,
    RunEvents,
    RunsPayload,
    Signalled,
    StepAnswer,
    StepEntered,
    ToRuns,
    decode_from_runs,
    encode,
)
from headrace.agents.workers.agent_worker import SPOILED, host_runs
from headrace.errors import HeadraceError
from headrace.executor import Batch, Signal
from headrace.exit_causes import ExitCause
from headrace.workers.functions import find_at_home, refer_to
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.lender import Lender, Loan
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import TaskDone, TaskMessage

_NEARLY_FULL = 0.8
_HARDER_AFTER_S = 1.0
_LEAVES_WITHIN_S = 1.0
_SHARE_OUT_AFTER_S = 0.1
_STOPPED_AS = {Signal.PREEMPT: ExitCause.PREEMPTED, Signal.CANCEL: ExitCause.LOST, Signal.KILL: ExitCause.LOST}


@dataclass(slots=True, eq=False)
class _Hosted:
    """One attempt in a worker; `step` is the last it was about to take."""

    id: int
    epoch: int
    step: str = ""
    peak_bytes: int = 0
    signal: Signal | None = None
    effects: set[str] = field(default_factory=set[str])  # steps whose side effects are under way


@dataclass(slots=True, eq=False)
class _House:
    """A slot's worker and the runs in it. Until the worker is there, what is for it waits in `unsent`."""

    slot: int
    reserved_bytes: int
    runs: dict[int, _Hosted] = field(default_factory=dict[int, _Hosted])
    worker: Worker | None = None
    loan: Loan | None = None
    keeper: asyncio.Task[None] | None = None
    unsent: list[ToRuns] = field(default_factory=list["ToRuns"])
    unacked: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])  # (our seq, the worker's)

    def send(self, message: ToRuns) -> None:
        if self.worker is None:
            self.unsent.append(message)
        else:
            self.worker.send(encode(message))


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
        self._houses: dict[int, _House] = {}  # by slot
        self._hosts: dict[int, _House] = {}  # by run
        self._keepers: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()  # of those, the ones whose runs have all ended
        self._settling: asyncio.Task[None] | None = None
        self._returned: asyncio.TimerHandle | None = None
        self._entry = refer_to(host_runs)

    def start(self, work: AgentRun) -> None:
        house = self._houses.get(work.slot)
        try:
            function = refer_to(self._kinds[work.kind].function)
        except HeadraceError as error:
            self._tell_end(_Hosted(work.id, work.epoch), ExitCause.FAILED, str(error))
            return
        if house is None:
            house = self._houses[work.slot] = _House(work.slot, work.memory_bytes)
            house.keeper = asyncio.get_running_loop().create_task(self._keep(house))
            self._keepers.add(house.keeper)
            house.keeper.add_done_callback(self._keepers.discard)
            house.keeper.add_done_callback(self._leaving.discard)
        house.runs[work.id] = _Hosted(work.id, work.epoch)
        self._hosts[work.id] = house
        house.send(BeginRun(work, function))

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        house, run = self._found(id, epoch)
        if house is None or run is None:
            return
        run.signal = what
        if what is Signal.KILL and deadline_s <= 0:
            self._harder(house, run, signal.SIGKILL)
            return
        house.send(Signalled(id, epoch, what, deadline_s))
        # A worker that still listens cancels the run at the deadline by itself.
        after_s = deadline_s + (_HARDER_AFTER_S if what is Signal.PREEMPT else 0.0)
        asyncio.get_running_loop().call_later(after_s, self._harder, house, run, signal.SIGTERM)

    def put(self, id: int, epoch: int, step: str, data: bytes | None, error: RemoteError | None = None) -> None:
        house, run = self._found(id, epoch)
        if house is not None and run is not None:
            run.effects.discard(step)  # of a program: its end is told here, not by the worker
            house.send(StepAnswer(id, epoch, step, data, error))

    def events(self) -> AsyncIterator[Batch[AgentEvent]]:
        return self._outbox.batches()

    def ack(self, upto: int) -> None:
        self._outbox.ack(upto)
        for house in self._houses.values():
            acked = 0
            while house.unacked and house.unacked[0][0] <= upto:
                acked = house.unacked.popleft()[1]
            if acked:
                house.send(Ack(acked))

    def read(self, worker: int, used_bytes: int) -> None:
        """A reading of the warden's; one that is nearly full gets more, where there is more."""
        for house in self._houses.values():
            if house.worker is not None and house.worker.id == worker and house.runs:
                run = next(iter(house.runs.values()))  # stands for all in the slot
                self._outbox.tell(MemoryUsed(id=run.id, epoch=run.epoch, seq=0, memory_bytes=used_bytes))
                if used_bytes >= house.worker.limit_bytes * _NEARLY_FULL:
                    self._settle_soon()

    def stuck(self, worker: int, seconds: float, stack: str) -> None:
        """Told of the newest run in the slot: a parent is mostly waiting for its child."""
        for house in self._houses.values():
            if house.worker is not None and house.worker.id == worker and house.runs:
                run = next(reversed(house.runs.values()))
                self._outbox.tell(LoopStuck(id=run.id, epoch=run.epoch, seq=0, seconds=seconds, stack=stack))

    async def close(self) -> None:
        for house in self._houses.values():
            house.runs.clear()
            if house.worker is not None:
                house.worker.kill()
        keepers = list(self._keepers)
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        if self._returned is not None:  # by keepers that have just ended
            self._returned.cancel()
        if self._settling is not None:
            self._settling.cancel()

    def _found(self, id: int, epoch: int) -> tuple[_House | None, _Hosted | None]:
        house = self._hosts.get(id)
        run = house.runs.get(id) if house is not None else None
        return (house, run) if run is not None and run.epoch == epoch else (None, None)

    async def _keep(self, house: _House) -> None:
        """From the loan to its return: one worker, until its runs have ended or it has."""
        if self._leaving:  # what they were lent is about to be free, and one of them may be used again
            await asyncio.wait(self._leaving, timeout=_LEAVES_WITHIN_S)
        try:
            house.loan = await self._lender.lend(house.reserved_bytes, partial(self._started, house))
            ending = await self._hosted(house)
            for run in list(house.runs.values()):
                self._end_with(house, run, *exit_after_death(ending, run.step))
        except HeadraceError as error:
            for run in list(house.runs.values()):
                self._end_with(house, run, ExitCause.LOST, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may be left waiting for these runs
            reason = f"what its worker said could not be understood: {type(error).__name__}: {error}"
            for run in list(house.runs.values()):
                self._end_with(house, run, ExitCause.FAILED, reason)
        finally:
            if self._houses.get(house.slot) is house:  # a child may have come back to the slot, in a worker of its own
                del self._houses[house.slot]
            if house.worker is not None:
                self._pool.give_back(house.worker)
            if house.loan is not None:
                self._lender.returned(house.loan)
            self._settle_later()

    async def _started(self, house: _House, limit_bytes: int) -> Worker:
        worker = await self._pool.worker(limit_bytes)
        home, house.unsent = RunsPayload(str(self._spools), house.unsent), []
        worker.start(self._entry, encode(home))
        house.worker = worker
        return worker

    async def _hosted(self, house: _House) -> TaskEnd:
        worker = house.worker
        assert worker is not None
        is_over = False
        try:
            while isinstance(message := await worker.receive(), TaskMessage):
                self._hear(house, decode_from_runs(message.payload))
            is_over = isinstance(message, TaskDone) and message.payload != SPOILED
            return message
        finally:
            worker.is_spoiled |= not is_over

    def _hear(self, house: _House, message: RunEvents | StepEntered | EffectRaised | KindRegistered) -> None:
        match message:
            case RunEvents():
                for event in message.events:
                    self._pass_on(house, event)
            case StepEntered():
                if run := house.runs.get(message.id):
                    run.step = message.step
            case EffectRaised():
                if run := house.runs.get(message.id):
                    run.effects.discard(message.step)
            case KindRegistered():
                kind = TaskKind(
                    name=message.name,
                    function=find_at_home(message.function),
                    max_attempts=message.max_attempts,
                    timeout_s=message.timeout_s,
                    memory_bytes=message.memory_bytes,
                )
                self._register(kind)
            case _:
                assert_never(message)

    def _pass_on(self, house: _House, event: AgentEvent) -> None:
        run = house.runs.get(event.id)
        if run is None or run.epoch != event.epoch:
            return  # it was ended from here
        theirs = event.seq
        if isinstance(event, Emitted):
            self._outbox.drop_or_tell(event)
            return
        if isinstance(event, RunEnded) and event.cause is ExitCause.OUT_OF_MEMORY and house.worker is not None:
            event.reason = memory_error_in_words(event.reason, house.worker, run.peak_bytes, run.step)
        house.unacked.append((self._outbox.tell(event), theirs))
        if isinstance(event, MemoryUsed):
            run.peak_bytes = event.memory_bytes
        elif isinstance(event, StepStarting):
            run.effects.add(event.step)
        elif isinstance(event, (StepDone, StepRaised)):
            run.effects.discard(event.step)
        elif isinstance(event, RunEnded):
            self._forget(house, run)

    def _end_with(self, house: _House, run: _Hosted, cause: ExitCause, reason: str) -> None:
        """A run's worker has ended; one that was told to stop has done so."""
        if run.signal is not None and cause is ExitCause.LOST:
            cause = _STOPPED_AS[run.signal]
            reason = ""
        self._tell_end(run, cause, reason)
        self._forget(house, run)

    def _tell_end(self, run: _Hosted, cause: ExitCause, reason: str) -> None:
        self._outbox.tell(RunEnded(id=run.id, epoch=run.epoch, seq=0, cause=cause, reason=reason, step=run.step))

    def _forget(self, house: _House, run: _Hosted) -> None:
        del house.runs[run.id]
        del self._hosts[run.id]
        if not house.runs and self._houses.get(house.slot) is house:
            self._leave(house)

    def _leave(self, house: _House) -> None:
        """Nobody lives here any more."""
        del self._houses[house.slot]
        if house.keeper is not None:
            self._leaving.add(house.keeper)
        if house.loan is not None:
            house.loan.reserved_bytes = 0
        house.send(LeaveWorker())
        asyncio.get_running_loop().call_later(_LEAVES_WITHIN_S, self._evict, house)

    def _evict(self, house: _House) -> None:
        """Something that a run has left behind, a thread or a task, keeps its worker from leaving."""
        if house.keeper is not None and not house.keeper.done() and house.worker is not None:
            house.worker.kill()

    def _harder(self, house: _House, run: _Hosted, number: int) -> None:
        """It has not stopped in time. Inside a side effect that would leave a doubt, which only an emergency may."""
        if house.runs.get(run.id) is not run:
            return
        loop = asyncio.get_running_loop()
        if run.effects and run.signal is Signal.PREEMPT:
            loop.call_later(_HARDER_AFTER_S, self._harder, house, run, number)
            return
        if house.worker is not None:
            house.worker.kill(number)
        elif number == signal.SIGKILL:  # it has not even begun
            house.unsent = [m for m in house.unsent if not (isinstance(m, BeginRun) and m.work.id == run.id)]
            self._end_with(house, run, ExitCause.LOST, "")
            return
        loop.call_later(_HARDER_AFTER_S, self._harder, house, run, signal.SIGKILL)

    def _settle_later(self) -> None:
        """What came back is shared out, unless the next worker takes it before."""
        if self._returned is None:
            self._returned = asyncio.get_running_loop().call_later(_SHARE_OUT_AFTER_S, self._share_out)

    def _share_out(self) -> None:
        self._returned = None
        self._settle_soon()

    def _settle_soon(self) -> None:
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._lender.settle())
