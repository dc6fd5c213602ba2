"""One attempt's line to the controller: events out, acknowledgements and answers back. Covers: waiting for the journal,
and being told to stop. Does not cover: what an agent sees (execute.agent_context).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor as Threads

from headrace.errors import RunFailed
from headrace.execute.agent_outbox import AgentOutbox
from headrace.execute.contract import (
    Checkpoint,
    ChildWanted,
    Emitted,
    Outcome,
    Receiving,
    Signal,
    StepDone,
    StepStarting,
    Wanted,
)
from headrace.survey.record import Usage


class RunStopped(BaseException):
    """Ends an attempt from inside. Not an Exception: an agent's own `except Exception` must not keep it."""

    def __init__(self, outcome: Outcome, *, resume_at: float | None = None, step: str = "") -> None:
        super().__init__(outcome.value)
        self.outcome = outcome
        self.resume_at = resume_at
        self.step = step


class AgentLink:
    def __init__(self, id: int, epoch: int, outbox: AgentOutbox, threads: Threads) -> None:
        self.id = id
        self.epoch = epoch
        self.threads = threads
        self.signal: Signal | None = None
        self.in_side_effect = False
        self.is_closed = False
        self._outbox = outbox
        self._answers: dict[str, asyncio.Future[bytes | None]] = {}

    def is_stopping(self) -> bool:
        return self.signal is not None or self.is_closed

    def pass_or_stop(self) -> None:
        """Called where nothing is lost by stopping."""
        if self.is_closed:
            raise RunStopped(Outcome.LOST)
        if self.signal is not None:
            raise RunStopped(self._stopped_as)

    async def step_starting(self, name: str) -> None:
        """From here on only the emergency may cancel it: a start that was written is a doubt if nothing follows."""
        self.in_side_effect = True
        await self._outbox.committed(StepStarting(id=self.id, epoch=self.epoch, seq=0, step=name))
        if self.is_closed:
            raise RunStopped(Outcome.LOST)

    async def step_done(self, name: str, result: bytes, usage: Usage | None) -> None:
        event = StepDone(id=self.id, epoch=self.epoch, seq=0, step=name, result=result, usage=usage)
        if self.is_closed:
            raise RunStopped(Outcome.LOST)
        await self._outbox.committed(event)

    async def checkpoint(self, number: int, state: bytes) -> None:
        await self._outbox.committed(Checkpoint(id=self.id, epoch=self.epoch, seq=0, number=number, state=state))

    async def fetch(self, step: str) -> bytes | None:
        return await self._answer(Wanted(id=self.id, epoch=self.epoch, seq=0, step=step))

    async def receive(self, step: str) -> bytes | None:
        return await self._answer(Receiving(id=self.id, epoch=self.epoch, seq=0, step=step))

    def emit(self, payload: bytes) -> None:
        if not self.is_closed:
            self._outbox.drop_or_tell(Emitted(id=self.id, epoch=self.epoch, seq=0, payload=payload))

    async def run_child(self, step: str, kind: str, arguments: bytes) -> bytes | None:
        event = ChildWanted(id=self.id, epoch=self.epoch, seq=0, step=step, kind=kind, arguments=arguments)
        return await self._answer(event)

    def put(self, step: str, data: bytes | None, error: str) -> None:
        waiting = self._answers.pop(step, None)
        if waiting is None or waiting.done():
            return
        if error:
            waiting.set_exception(RunFailed(f"behind step {step!r}", state="did not succeed", reason=error))
        else:
            waiting.set_result(data)

    def stop_waiting(self) -> None:
        """Told to stop: nothing is lost by no longer waiting for an answer."""
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(RunStopped(self._stopped_as))

    @property
    def _stopped_as(self) -> Outcome:
        return Outcome.PREEMPTED if self.signal is Signal.PREEMPT else Outcome.LOST

    async def _answer(self, event: Wanted | Receiving | ChildWanted) -> bytes | None:
        self.pass_or_stop()
        answer = self._answers[event.step] = asyncio.get_running_loop().create_future()
        self._outbox.tell(event)
        return await answer


class UnjournaledLink(AgentLink):
    """For a heartbeat: it starts over each time, so there is nothing to journal."""

    async def step_starting(self, name: str) -> None:
        self.pass_or_stop()

    async def step_done(self, name: str, result: bytes, usage: Usage | None) -> None:
        self.pass_or_stop()

    async def checkpoint(self, number: int, state: bytes) -> None:
        self.pass_or_stop()

    async def receive(self, step: str) -> bytes | None:
        return None

    def emit(self, payload: bytes) -> None:
        pass
