"""`AgentRequests` answers what running agents ask the controller for: earlier results, messages, models, programs.

Each answer is journaled as its step's result before the run gets it. Covers: a request from its event to its answer.
Does not cover: children (run_events, backlog), how models and programs are reached (agents.model_calls,
agents.commands), holding answers while a slot computes for others (held_answers).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from headrace.agents import contract
from headrace.agents.commands import AgentCommands
from headrace.agents.contract import RemoteError
from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.engine.live_runs import LiveRun
from headrace.agents.model_calls import AgentCalls
from headrace.errors import HeadraceError
from headrace.models.limiter import CallNotMade
from headrace.survey.values import encode_value

Journal: TypeAlias = Callable[[LiveRun, str, bytes], None]


class AgentRequests:
    """`journal` writes the result of a run's step."""

    def __init__(self, parts: EngineParts, calls: AgentCalls, commands: AgentCommands, journal: Journal) -> None:
        self._parts = parts
        self._writer = parts.writer
        self._answers = parts.answers
        self._calls = calls
        self._commands = commands
        self._journal = journal

    def fetch(self, run: LiveRun, event: contract.ResultWanted) -> None:
        self._answers.put(run.id, run.epoch, event.step, self._parts.file.steps.result(run.id, event.step))

    def receive(self, run: LiveRun, event: contract.Receiving) -> None:
        self._parts.spawn(self._receive(run, event))

    def ask(self, run: LiveRun, event: contract.AskWanted) -> None:
        self._serve(run, event, self._reply(run, event))

    def run_command(self, run: LiveRun, event: contract.CommandWanted) -> None:
        self._serve(run, event, self._commands.run(event.command, run.priority))

    def stop(self, run: LiveRun) -> None:
        """The run is being stopped: a model call that still waits for its turn is not made."""
        if run.requests:
            self._calls.release_stopped()

    def forget(self, run: LiveRun) -> None:
        """The run's attempt has ended: cancel what is being done for it."""
        for task in run.requests:
            task.cancel()
        run.requests.clear()

    def _serve(
        self,
        run: LiveRun,
        event: contract.AskWanted | contract.CommandWanted,
        made: Coroutine[Any, Any, bytes],
    ) -> None:
        task = self._parts.spawn(self._answer(run, event, made))
        run.requests.add(task)
        task.add_done_callback(run.requests.discard)

    async def _answer(
        self,
        run: LiveRun,
        event: contract.AskWanted | contract.CommandWanted,
        made: Coroutine[Any, Any, bytes],
    ) -> None:
        answer = partial(self._answers.put, event.id, event.epoch, event.step)
        try:
            result = await made
        except CallNotMade:
            answer(None)
        except Exception as error:  # noqa: BLE001 - raised again inside the run, which may handle it
            answer(None, _as_remote_error(error))
        else:
            if run.epoch == event.epoch and run.ended is None:
                self._journal(run, event.step, result)
                self._writer.after_commit(partial(answer, result))

    async def _reply(self, run: LiveRun, event: contract.AskWanted) -> bytes:
        def is_stopping() -> bool:
            return run.stop is not None or run.epoch != event.epoch

        asked = event.model, event.prompt, event.system
        return encode_value(await self._calls.ask(*asked, is_stopping, run.priority, event.timeout_s))

    async def _receive(self, run: LiveRun, event: contract.Receiving) -> None:
        run.has_mail = False
        await self._writer.flush()
        if run.epoch != event.epoch or run.ended is not None:
            return
        found = self._parts.file.steps.first_message(run.id, run.taken)
        if found is not None:
            run.taken.add(found[0])
            self._writer.write(self._parts.writes.steps.received(found[0]))
            self._writer.write(self._parts.writes.steps.done(run.id, run.epoch, event.step, found[1], time.time()))
            await self._writer.flush()
        self._answers.put(run.id, event.epoch, event.step, found[1] if found is not None else None)


def _as_remote_error(error: Exception) -> RemoteError:
    if isinstance(error, HeadraceError):
        return RemoteError(type(error).__name__, error.message, error.fix)
    return RemoteError("HeadraceError", f"{type(error).__name__}: {error}")
