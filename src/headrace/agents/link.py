"""One attempt's line to the controller: events out, acknowledgements and answers back. Covers: waiting for the journal,
and being told to stop. Does not cover: what an agent sees (agents.context).
"""

from __future__ import annotations

import asyncio
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
    StepDiffers,
    StepDone,
    StepRaised,
    StepStarting,
)
from headrace.errors import HeadraceError, RunFailed
from headrace.executor import Signal
from headrace.exit_causes import ExitCause

Value = TypeVar("Value")


class RunStopped(BaseException):
    """Ends an attempt from inside. Not an Exception: an agent's own `except Exception` must not keep it. What keeps it
    all the same, `gather(..., return_exceptions=True)` for one, changes nothing: that attempt has ended so
    (AgentLink.stopped).
    """

    def __init__(self, cause: ExitCause, *, resume_at: float | None = None, step: str = "") -> None:
        super().__init__(cause.value)
        self.cause = cause
        self.resume_at = resume_at
        self.step = step

    def again(self) -> RunStopped:
        return RunStopped(self.cause, resume_at=self.resume_at, step=self.step)


class AgentLink:
    """`stopped` is how the attempt ends, from the moment that its function was made to stop: whatever that makes of it
    is neither a result nor a failure.
    """

    def __init__(self, id: int, epoch: int, outbox: AgentOutbox, threads: Threads) -> None:
        self.id = id
        self.epoch = epoch
        self.threads = threads
        self.signal: Signal | None = None
        self.is_closed = False
        self.stopped: RunStopped | None = None
        self._outbox = outbox
        self._answers: dict[str, asyncio.Future[bytes | None]] = {}
        self._asked: set[str] = set()  # of those, what is being paid for
        self._effects: set[str] = set()  # steps whose side effects are under way; `gather` has several at once
        self._no_effects = asyncio.Event()

    @property
    def in_side_effect(self) -> bool:
        return bool(self._effects)

    def is_stopping(self) -> bool:
        return self.signal is not None or self.is_closed

    def pass_or_stop(self) -> None:
        """Called where nothing is lost by stopping; a side effect beside it would be."""
        if self.is_closed:
            raise RunStopped(ExitCause.LOST)
        if self.stopped is not None:
            raise self.stopped.again()
        if self.signal is not None and not self._lets_effects_end():
            raise self.stop()

    def _lets_effects_end(self) -> bool:
        return self.signal is Signal.PREEMPT and self.in_side_effect

    def stop(self, cause: ExitCause | None = None, *, resume_at: float | None = None, step: str = "") -> RunStopped:
        """What to raise where the function stops now: by default as it was told to."""
        stopped = RunStopped(cause or self._stopped_as, resume_at=resume_at, step=step)
        self.stopped = self.stopped or stopped.again()
        return stopped

    def entering(self, step: str) -> None:
        self._outbox.entering(self.id, step)

    async def side_effect(
        self, step: str, made: Coroutine[Any, Any, Value], mark: bytes, *, runs_program: bool = False
    ) -> Value:
        """Await `made` once its start is durable. From here on only the emergency may cancel it: a start that was
        written is a doubt if nothing follows.
        """
        self._effects.add(step)
        self._no_effects.clear()
        try:
            starting = StepStarting(
                id=self.id, epoch=self.epoch, seq=0, step=step, runs_program=runs_program, mark=mark
            )
            await self._outbox.committed(starting)
            if self.is_closed:
                raise RunStopped(ExitCause.LOST)
            return await made
        except BaseException:
            if not self.is_closed:
                self._outbox.effect_raised(self.id, step)
                self._outbox.tell(StepRaised(id=self.id, epoch=self.epoch, seq=0, step=step))
            raise
        finally:
            self._effects.discard(step)
            made.close()  # it may not even have begun
            if not self._effects:
                self._no_effects.set()
            if self.signal is not None:
                self.stop_waiting()

    async def effects_over(self) -> None:
        """Whoever ends the attempt before that would leave them in doubt."""
        if self._effects:
            await self._no_effects.wait()

    def differs(self, step: str, what: str) -> None:
        self._outbox.tell(StepDiffers(id=self.id, epoch=self.epoch, seq=0, step=step, what=what))

    async def step_done(self, name: str, result: bytes, mark: bytes = b"") -> None:
        event = StepDone(id=self.id, epoch=self.epoch, seq=0, step=name, result=result, mark=mark)
        if self.is_closed:
            raise RunStopped(ExitCause.LOST)
        await self._outbox.committed(event)

    async def checkpoint(self, number: int, state: bytes) -> None:
        await self._outbox.committed(Checkpoint(id=self.id, epoch=self.epoch, seq=0, number=number, state=state))

    async def fetch(self, step: str) -> bytes | None:
        return await self._answer(ResultWanted(id=self.id, epoch=self.epoch, seq=0, step=step))

    async def receive(self, step: str) -> bytes | None:
        return await self._answer(Receiving(id=self.id, epoch=self.epoch, seq=0, step=step))

    def emit(self, payload: bytes) -> None:
        if not self.is_closed and self.stopped is None:
            self._outbox.drop_or_tell(Emitted(id=self.id, epoch=self.epoch, seq=0, payload=payload))

    async def run_child(self, step: str, kind: str, arguments: bytes, mark: bytes) -> bytes | None:
        event = ChildWanted(id=self.id, epoch=self.epoch, seq=0, step=step, kind=kind, arguments=arguments, mark=mark)
        return await self._answer(event)

    async def ask(self, step: str, model: bytes, prompt: str, system: str, mark: bytes) -> bytes:
        """A reply that is on its way is paid for: being told to stop does not end the wait for it."""
        event = AskWanted(
            id=self.id, epoch=self.epoch, seq=0, step=step, model=model, prompt=prompt, system=system, mark=mark
        )
        return await self._patiently(event)

    async def run_command(self, step: str, command: ProgramCall, mark: bytes) -> bytes:
        event = CommandWanted(id=self.id, epoch=self.epoch, seq=0, step=step, command=command, mark=mark)
        return await self._patiently(event)

    def put(self, step: str, data: bytes | None, error: RemoteError | None) -> None:
        waiting = self._answers.pop(step, None)
        if waiting is None or waiting.done():
            return
        if error is not None:
            waiting.set_exception(_raised_again(error, step))
        else:
            waiting.set_result(data)

    def stop_waiting(self) -> None:
        """Told to stop: nothing is lost by no longer waiting for an answer, once no side effect is under way."""
        if self._lets_effects_end():
            return
        for step, waiting in self._answers.items():
            if step not in self._asked and not waiting.done():
                waiting.set_exception(self.stop())

    @property
    def _stopped_as(self) -> ExitCause:
        return ExitCause.PREEMPTED if self.signal is Signal.PREEMPT else ExitCause.LOST

    async def _patiently(self, event: AskWanted | CommandWanted) -> bytes:
        self._asked.add(event.step)
        try:
            answer = await self._answer(event)
        finally:
            self._asked.discard(event.step)
        if answer is None:
            raise self.stop()
        return answer

    async def _answer(self, event: ResultWanted | Receiving | ChildWanted | AskWanted | CommandWanted) -> bytes | None:
        self.pass_or_stop()
        answer = self._answers[event.step] = asyncio.get_running_loop().create_future()
        self._outbox.tell(event)
        return await answer


def _raised_again(told: RemoteError, step: str) -> HeadraceError:
    """As what it was raised elsewhere, as far as its class is one of ours."""
    kind = getattr(errors, told.kind, HeadraceError)
    error = kind.__new__(kind)
    HeadraceError.__init__(error, told.message, fix=told.fix)
    if isinstance(error, RunFailed):  # a child, whose own name the message tells
        error.run_name, error.state, error.reason = step, "did not succeed", told.message
    return error
