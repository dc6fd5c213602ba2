"""`AgentRequests` answers what running agents ask the controller for: earlier results, messages, models, programs.

Each answer is journaled as its step's result before the run gets it. A program ends with the attempt that asked for
it; a call that has gone out to a model does not, where the run goes on later:

    the reply comes                            ──►
      while the attempt that asked goes on         journaled, and given to it
      while no attempt goes on                     journaled: the next one finds it
      while another goes on, not yet at this step  kept until it comes to the step and asks the same, or has ended
      when the run has ended                       counted, and dropped
    the call raises                            ──► told to the attempt that waits, else nobody: the next asks again

Covers: a request from its event to its answer. Does not cover: children (run_events, backlog), how models and programs
are reached (agents.model_calls, agents.commands), holding answers while a slot computes for others (held_answers).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from headrace.agents import contract
from headrace.agents.calls_in_flight import CallInFlight, CallsInFlight
from headrace.agents.commands import AgentCommands
from headrace.agents.contract import RemoteError
from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.engine.live_runs import LiveRun
from headrace.agents.model_calls import AgentCalls
from headrace.errors import HeadraceError
from headrace.models.limiter import CallNotMade
from headrace.priority import Priority
from headrace.survey.values import encode_value

Journal: TypeAlias = Callable[[int, int, str, bytes, bytes], None]
CommandsOfHost: TypeAlias = Callable[[str], AgentCommands]


class AgentRequests:
    """`journal` writes a step's result: of which run and attempt, the step, the result and its mark. `calls_in_flight`
    are those to models that have no reply yet.
    """

    def __init__(self, parts: EngineParts, calls: AgentCalls, commands: CommandsOfHost, journal: Journal) -> None:
        self._parts = parts
        self._writer = parts.writer
        self._answers = parts.answers
        self._calls = calls
        self._commands = commands
        self._journal = journal
        self.calls_in_flight = CallsInFlight()

    def fetch(self, run: LiveRun, event: contract.ResultWanted) -> None:
        self._answers.put(run.id, run.epoch, event.step, self._parts.file.steps.result(run.id, event.step))

    def receive(self, run: LiveRun, event: contract.Receiving) -> None:
        self._parts.spawn(self._receive(run, event))

    def ask(self, run: LiveRun, event: contract.AskWanted) -> None:
        call = self.calls_in_flight.join(event)
        if call is None:
            call = self.calls_in_flight.add(event)
            call.task = self._parts.spawn(self._call(call, run.priority))
        elif call.reply is not None:
            self._settle(call, call.reply)

    def run_command(self, run: LiveRun, event: contract.CommandWanted) -> None:
        task = self._parts.spawn(self._run_program(run, event))
        run.requests.add(task)
        task.add_done_callback(run.requests.discard)

    def stop(self, run: LiveRun) -> None:
        """The run is being stopped: a model call that still waits for its turn is not made."""
        if self.calls_in_flight.of(run.id):
            self._calls.release_stopped()

    def attempt_ended(self, run: LiveRun, *, goes_on: bool) -> None:
        """The run's attempt has ended: cancel what is being done for it, but for calls that have gone out to models
        where the run `goes_on` later.
        """
        for task in run.requests:
            task.cancel()
        run.requests.clear()
        calls = self.calls_in_flight.of(run.id)
        for call in calls:
            if call.epoch == run.epoch and not goes_on:
                self._cancel(call)
                continue
            call.attempt_ended(run.epoch)
            if call.reply is not None:
                self._settle(call, call.reply)
        if calls:
            self._calls.release_stopped()

    def run_ended(self, id: int) -> None:
        self.calls_in_flight.forget(id)

    # Models.

    async def _call(self, call: CallInFlight, priority: Priority) -> None:
        """Make a call and settle it; made again where it was given up and the next attempt wants it after all."""

        def is_stopping() -> bool:
            run = self._parts.runs.attempt(call.run, call.epoch)
            return run is None or run.stop is not None

        telemetry = self._parts.telemetry
        heard = partial(telemetry.called, call.run) if telemetry is not None else None
        while True:
            try:
                reply = encode_value(await self._calls.ask(*call.asked, is_stopping, priority, call.timeout, heard))
            except CallNotMade:
                if is_stopping():
                    return self._give_error(call, None)
            except Exception as error:  # noqa: BLE001 - raised again inside the run, which may handle it
                return self._give_error(call, _as_remote_error(error))
            else:
                return self._replied(call, reply)

    def _replied(self, call: CallInFlight, reply: bytes) -> None:
        if call not in self.calls_in_flight:
            return
        run = self._parts.runs.by_id.get(call.run)
        if run is not None and run.ended is None and run.epoch > call.epoch:
            # This attempt has read the journal without the reply, and may use the step's name for something else.
            call.reply = reply
        else:
            self._settle(call, reply)

    def _settle(self, call: CallInFlight, reply: bytes) -> None:
        self.calls_in_flight.remove(call)
        self._journal(call.run, call.epoch, call.step, reply, call.mark)
        self._writer.after_commit(partial(self._answers.put, call.run, call.epoch, call.step, reply))

    def _give_error(self, call: CallInFlight, error: RemoteError | None) -> None:
        if call in self.calls_in_flight:
            self.calls_in_flight.remove(call)
            self._answers.put(call.run, call.epoch, call.step, None, error)

    def _cancel(self, call: CallInFlight) -> None:
        self.calls_in_flight.remove(call)
        if call.task is not None:
            call.task.cancel()

    # Programs and messages.

    async def _run_program(self, run: LiveRun, event: contract.CommandWanted) -> None:
        answer = partial(self._answers.put, event.id, event.epoch, event.step)
        started_s = time.monotonic()
        try:
            result = await self._commands(run.host).run(event.command, run.priority)
        except Exception as error:  # noqa: BLE001 - raised again inside the run, which may handle it
            self._export_program(event, started_s, error="raised")
            answer(None, _as_remote_error(error))
        else:
            self._export_program(event, started_s)
            if self._parts.runs.attempt(event.id, event.epoch) is not None:
                self._journal(event.id, event.epoch, event.step, result, event.mark)
                self._writer.after_commit(partial(answer, result))

    def _export_program(self, event: contract.CommandWanted, started_s: float, error: str = "") -> None:
        if self._parts.telemetry is not None:
            took_s = time.monotonic() - started_s
            self._parts.telemetry.stepped(event.id, event.step, took_s, is_program=True, error=error)

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
