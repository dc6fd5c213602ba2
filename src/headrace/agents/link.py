"""`AgentLink` connects one attempt with the controller: events go out, acknowledgements and answers come back.

Covers: waiting for the journal and for answers. Does not cover: being stopped (agents.stopping), what an agent sees
(agents.context).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import Executor as Threads
from typing import Any, TypeVar

from headrace import errors
from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.contract import (
    AskWanted,
    Checkpoint,
    ChildWanted,
    CommandWanted,
    Emitted,
    ProgramCall,
    Receiving,
    RemoteError,
    ResultWanted,
    SlotWanted,
    StepDiffers,
    StepDone,
    StepRaised,
    StepStarting,
)
from headrace.agents.slot_turns import SlotTurns
from headrace.agents.stopping import AttemptStop
from headrace.errors import HeadraceError, RunFailed, RunUndecided

Value = TypeVar("Value")


class AgentLink:
    """`stopping` says whether and how the attempt is to stop, `activity` whether it computes or waits."""

    def __init__(self, id: int, epoch: int, outbox: AgentOutbox, threads: Threads, slot: SlotTurns) -> None:
        self.id = id
        self.epoch = epoch
        self.threads = threads
        self.stopping = AttemptStop()
        self.activity = slot.enter(id, epoch)
        self._outbox = outbox
        self._answers: dict[str, asyncio.Future[bytes | None]] = {}
        self._asked: set[str] = set()  # of those, the ones that wait for models
        self._programs: set[str] = set()  # and those that wait for programs, which would end with the attempt

    def entering(self, step: str) -> None:
        self._outbox.entering(self.id, self.epoch, step)

    async def side_effect(
        self, step: str, made: Coroutine[Any, Any, Value], mark: bytes, *, runs_program: bool = False
    ) -> Value:
        """Await `made` once its start is durable. From then on only an emergency may cancel it: of a start that was
        journaled without a result, it is open whether the effect happened.
        """
        self.stopping.effect_started(step)
        started_s = time.monotonic()
        try:
            starting = StepStarting(
                id=self.id, epoch=self.epoch, seq=0, step=step, runs_program=runs_program, mark=mark
            )
            await self._outbox.committed(starting)
            self.stopping.check_is_open()
            return await made
        except BaseException:
            if not self.stopping.is_closed:
                self._outbox.effect_raised(self.id, self.epoch, step)
                took_s = None if runs_program else time.monotonic() - started_s
                self._outbox.add(StepRaised(id=self.id, epoch=self.epoch, seq=0, step=step, took_s=took_s))
            raise
        finally:
            self.stopping.effect_ended(step)
            made.close()  # it may not even have begun
            self.stop_waiting()

    def differs(self, step: str, what: str) -> None:
        self._outbox.add(StepDiffers(id=self.id, epoch=self.epoch, seq=0, step=step, what=what))

    async def step_done(self, name: str, result: bytes, mark: bytes = b"", took_s: float | None = None) -> None:
        event = StepDone(id=self.id, epoch=self.epoch, seq=0, step=name, result=result, mark=mark, took_s=took_s)
        self.stopping.check_is_open()
        await self._outbox.committed(event)

    async def checkpoint(self, number: int, state: bytes) -> None:
        await self._outbox.committed(Checkpoint(id=self.id, epoch=self.epoch, seq=0, number=number, state=state))

    async def fetch(self, step: str) -> bytes | None:
        return await self._answer(ResultWanted(id=self.id, epoch=self.epoch, seq=0, step=step))

    async def receive(self, step: str) -> bytes | None:
        return await self._answer(Receiving(id=self.id, epoch=self.epoch, seq=0, step=step))

    def emit(self, payload: bytes) -> None:
        if not self.stopping.is_closed and self.stopping.stopped is None:
            self._outbox.add_or_drop(Emitted(id=self.id, epoch=self.epoch, seq=0, payload=payload))

    async def turn(self, step: str) -> None:
        """Return when the slot computes: at once, unless it waits and may have been given to others."""
        if self.activity.slot.is_waiting:
            await self._answer(SlotWanted(id=self.id, epoch=self.epoch, seq=0, step=step))

    async def run_child(
        self, step: str, kind: str, arguments: bytes, mark: bytes, *, is_isolated: bool
    ) -> bytes | None:
        if not is_isolated:
            await self.turn(step)
        event = ChildWanted(
            id=self.id,
            epoch=self.epoch,
            seq=0,
            step=step,
            kind=kind,
            arguments=arguments,
            mark=mark,
            is_isolated=is_isolated,
        )
        return await self._answer(event)

    async def ask(
        self, step: str, model: bytes, prompt: str, system: str, mark: bytes, timeout_s: float | None
    ) -> bytes:
        """Ask a model. The controller makes the call, and keeps the reply for the next attempt where this one stops."""
        event = AskWanted(
            id=self.id, epoch=self.epoch, seq=0, step=step, model=model, prompt=prompt, system=system, mark=mark,
            timeout_s=timeout_s,
        )  # fmt: skip
        return await self._patiently(event, self._asked)

    async def run_command(self, step: str, command: ProgramCall, mark: bytes) -> bytes:
        event = CommandWanted(id=self.id, epoch=self.epoch, seq=0, step=step, command=command, mark=mark)
        return await self._patiently(event, self._programs)

    def put(self, step: str, data: bytes | None, error: RemoteError | None) -> None:
        self.activity.answered()
        waiting = self._answers.pop(step, None)
        if waiting is None or waiting.done():
            return
        if error is not None:
            waiting.set_exception(_raised_again(error))
        else:
            waiting.set_result(data)

    def step_ended(self, key: str, outer: str | None) -> None:
        """The function of a step has ended. Its result, if any, goes out before a sibling that is stopped here does."""
        self.activity.step_ended(key, outer)
        self.stop_waiting()

    def stop_waiting(self) -> None:
        """After a stop signal, give up waiting for answers: it loses nothing, once no side effect is in flight. Replies
        of models are waited for as long as a step's function or a program goes on beside them, which that would cut.
        """
        if self.stopping.signal is None or self.stopping.waits_for_effects():
            return
        kept = self._programs | self._asked if self._programs or self.activity.is_inside_a_step else frozenset[str]()
        for step, waiting in self._answers.items():
            if step not in kept and not waiting.done():
                waiting.set_exception(self.stopping.stop())

    async def _patiently(self, event: AskWanted | CommandWanted, awaited: set[str]) -> bytes:
        awaited.add(event.step)
        try:
            answer = await self._answer(event)
        finally:
            awaited.discard(event.step)
            self.stop_waiting()
        if answer is None:
            raise self.stopping.stop()
        return answer

    async def _answer(
        self, event: ResultWanted | Receiving | ChildWanted | AskWanted | CommandWanted | SlotWanted
    ) -> bytes | None:
        self.stopping.pass_or_stop()
        answer = self._answers[event.step] = asyncio.get_running_loop().create_future()
        self._outbox.add(event)
        self.activity.request_out(event)
        try:
            return await answer
        finally:
            self.activity.request_over(event)


def _raised_again(remote: RemoteError) -> HeadraceError:
    """The controller's error as an object of the same class, where that is one of ours."""
    kind = getattr(errors, remote.kind, HeadraceError)
    error = kind.__new__(kind)
    HeadraceError.__init__(error, remote.message, fix=remote.fix)
    if isinstance(error, RunFailed):
        error.run_name, error.state, error.reason = remote.run_name, remote.state, remote.reason
        error.is_endpoints = remote.is_endpoints
    if isinstance(error, RunUndecided):
        error.step = remote.reason
    return error
