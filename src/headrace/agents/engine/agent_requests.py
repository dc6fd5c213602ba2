"""What running agents want from the controller: earlier results, messages, replies of models, programs run for them.

Each answer is journaled as its step's result before the run has it. Covers: one want from its event to its answer.
Does not cover: children (agents.engine.backlog), or how models and programs are reached (execute).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from headrace.agents import contract
from headrace.agents.commands import AgentCommands
from headrace.agents.contract import AgentExecutor, RemoteError
from headrace.agents.engine.engine_writer import EngineWriter
from headrace.agents.engine.live_runs import LiveRun
from headrace.agents.model_calls import AgentCalls
from headrace.errors import HeadraceError
from headrace.models.limiter import CallNotMade
from headrace.store.engine_file.engine_file import EngineFile, Writes
from headrace.survey.values import encode_value

Journal: TypeAlias = Callable[[LiveRun, str, bytes], None]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class AgentRequests:
    """`journal` writes a step's result of a run that is still there."""

    def __init__(
        self,
        file: EngineFile,
        writer: EngineWriter,
        writes: Writes,
        executor: AgentExecutor,
        calls: AgentCalls,
        commands: AgentCommands,
        spawn: Spawn,
    ) -> None:
        self._file = file
        self._writer = writer
        self._writes = writes
        self._executor = executor
        self._calls = calls
        self._commands = commands
        self._spawn = spawn

    def fetch(self, run: LiveRun, event: contract.ResultWanted) -> None:
        self._executor.put(run.id, run.epoch, event.step, self._file.steps.result(run.id, event.step))

    def receive(self, run: LiveRun, event: contract.Receiving) -> None:
        self._spawn(self._receive(run, event))

    def ask(self, run: LiveRun, event: contract.AskWanted, journal: Journal) -> None:
        self._serve(run, event, self._reply(run, event), journal)

    def run_command(self, run: LiveRun, event: contract.CommandWanted, journal: Journal) -> None:
        self._serve(run, event, self._commands.run(event.command), journal)

    def stop(self, run: LiveRun) -> None:
        """It was told to stop: a call that still waits for its turn is not made."""
        if run.requests:
            self._calls.release_stopped()

    def forget(self, run: LiveRun) -> None:
        """It has ended, and nobody waits for its answers any more."""
        for task in run.requests:
            task.cancel()
        run.requests.clear()

    def _serve(
        self,
        run: LiveRun,
        event: contract.AskWanted | contract.CommandWanted,
        made: Coroutine[Any, Any, bytes],
        journal: Journal,
    ) -> None:
        task = self._spawn(self._answer(run, event, made, journal))
        run.requests.add(task)
        task.add_done_callback(run.requests.discard)

    async def _answer(
        self,
        run: LiveRun,
        event: contract.AskWanted | contract.CommandWanted,
        made: Coroutine[Any, Any, bytes],
        journal: Journal,
    ) -> None:
        answer = partial(self._executor.put, event.id, event.epoch, event.step)
        try:
            result = await made
        except CallNotMade:
            answer(None)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the run's to handle
            answer(None, _told(error))
        else:
            if run.epoch == event.epoch and run.ended is None:
                journal(run, event.step, result)
                self._writer.after_commit(partial(answer, result))

    async def _reply(self, run: LiveRun, event: contract.AskWanted) -> bytes:
        def is_stopping() -> bool:
            return run.stop is not None or run.epoch != event.epoch

        return encode_value(await self._calls.ask(event.model, event.prompt, event.system, is_stopping))

    async def _receive(self, run: LiveRun, event: contract.Receiving) -> None:
        run.has_mail = False
        await self._writer.flush()
        if run.epoch != event.epoch or run.ended is not None:
            return
        found = self._file.steps.first_message(run.id, run.taken)
        if found is not None:
            run.taken.add(found[0])
            self._writer.write(self._writes.steps.received(found[0]))
            self._writer.write(self._writes.steps.done(run.id, run.epoch, event.step, found[1], time.time()))
            await self._writer.flush()
        self._executor.put(run.id, run.epoch, event.step, found[1] if found is not None else None)


def _told(error: Exception) -> RemoteError:
    if isinstance(error, HeadraceError):
        return RemoteError(type(error).__name__, error.message, error.fix)
    return RemoteError("HeadraceError", f"{type(error).__name__}: {error}")
