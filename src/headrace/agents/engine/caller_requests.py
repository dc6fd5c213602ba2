"""`CallerRequests` carries out what callers ask of runs through their handles: results, events, cancelling, messages.

Called on the engine's loop. Covers: one method a request. Does not cover: submitting (backlog), or the caller's side
(run_handle).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

from headrace.agents.engine.backlog import Backlog
from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.engine.live_runs import RunEnd
from headrace.agents.engine.run_commands import RunCommands
from headrace.agents.engine.run_events import RunEvents
from headrace.agents.scheduler.events import Cancelled
from headrace.errors import HeadraceError, RunFileError
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState
from headrace.store.engine_file.runs import RunRow
from headrace.survey.values import decode_value, encode_value
from headrace.threads.crossing import Promise
from headrace.workers.command_result import CommandEnd


class CallerRequests:
    def __init__(self, parts: EngineParts, commands: RunCommands, events: RunEvents, backlog: Backlog) -> None:
        self._parts = parts
        self._file = parts.file
        self._writer = parts.writer
        self._writes = parts.writes
        self._commands = commands
        self._events = events
        self._backlog = backlog
        self._messages = parts.file.values.highest("messages")

    def watch(self, id: int, reply: Promise[RunEnd]) -> None:
        self._events.watch(id, reply)

    def unwatch(self, id: int, reply: Promise[RunEnd]) -> None:
        self._parts.listeners.give_up(id, reply)

    def listen(self, id: int, hear: Callable[[bytes | None], None]) -> None:
        row = self._file.runs.get(id)
        if row is not None and row.state.is_final:
            hear(None)
        else:
            self._parts.listeners.listen(id, hear)

    def leave(self, id: int, hear: Callable[[bytes | None], None]) -> None:
        self._parts.listeners.leave(id, hear)

    async def result(self, id: int) -> bytes | None:
        return self._file.runs.result(id)

    async def row(self, id: int) -> RunRow:
        await self._writer.flush()
        return self.row_now(id)

    def row_now(self, id: int) -> RunRow:
        row = self._file.runs.get(id)
        if row is None:
            raise RunFileError(f"{self._file.path} has no run {id}.", path=self._file.path)
        return row

    async def find(self, key: bytes) -> RunRow | None:
        await self._writer.flush()
        return self._file.runs.by_key(key)

    async def cancel(self, id: int) -> None:
        if id in self._parts.runs.by_id:
            self._parts.driver.send(Cancelled(now_s=time.monotonic(), id=id))
            return
        row = await self.row(id)
        if row.state.is_final:
            return
        for child in self._file.runs.unfinished_children(id):
            await self.cancel(child)
        self._commands.end_unstarted(id, row.name, RunState.CANCELLED)
        await self._writer.flush()

    async def send(self, id: int, payload: bytes) -> None:
        row = await self.row(id)
        if row.state.is_final:
            raise HeadraceError(f"The run {row.name} has ended and takes no messages.")
        self._messages += 1
        if run := self._parts.runs.by_id.get(id):
            run.has_mail = True
        self._writer.write(self._writes.steps.sent(self._messages, id, payload, time.time()))
        await self._writer.flush()
        self._backlog.look_again()

    async def resolve(self, id: int, step: str, result: bytes | None) -> None:
        """Decide about a side effect that was cut short: `result` is the step's, None where it is to run again."""
        row = await self.row(id)
        if row.state is not RunState.UNDECIDED or row.error != step:
            is_undecided = row.state is RunState.UNDECIDED
            state = f"waiting for a decision about {row.error!r}" if is_undecided else row.state.value
            raise HeadraceError(f"The run {row.name} has nothing to decide about step {step!r}: it is {state}.")
        if result is not None and self._file.steps.is_program(id, step):
            result = encode_value(asdict(CommandEnd.from_owner(decode_value(result))))
        if result is None:
            self._writer.write(self._writes.steps.not_started(id, step))
        else:
            self._writer.write(self._writes.steps.done(id, row.epoch, step, result, time.time()))
        self._writer.write(self._writes.runs.decided(id))
        await self._writer.flush()
        self._backlog.look_again()

    async def retry(self, id: int) -> None:
        row = await self.row(id)
        if row.state not in FAILED_STATES:
            raise HeadraceError(f"The run {row.name} cannot be tried again: it is {row.state.value}.")
        self._writer.write(self._writes.runs.retried(id))
        await self._writer.flush()
        self._backlog.look_again()

    async def unfinished(self, most: int) -> list[RunRow]:
        await self._writer.flush()
        return self._file.runs.unfinished(most)

    async def failed(self, most: int) -> list[RunRow]:
        await self._writer.flush()
        return self._file.runs.failed(most)

    async def events(self, most: int) -> list[tuple[float, int | None, str, str, str | None]]:
        await self._writer.flush()
        return self._file.notes.events(most)
